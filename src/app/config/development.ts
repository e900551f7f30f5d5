import { isLoopback } from '../../lib/net/loopback.ts'
import type { Config } from './schema.ts'

/** Whether `portolan start` runs local chains: with no file, no database and no chain configured. */
export const wantsLocalChains = (config: Config): boolean =>
  config.source.file === undefined &&
  config.database.url === undefined &&
  Object.keys(config.chains).length === 0

/** Whether the service is reachable from this machine only. */
export const isOnLoopback = ({ server }: Config): boolean =>
  isLoopback(server.host) &&
  (server.base_url === undefined ||
    // A public base address means that clients elsewhere are expected.
    isLoopback(new URL(server.base_url).hostname.replace(/^\[|\]$/g, '')))

/**
 * Whether the development rules hold: the demo administrator, webhooks to `http://` and loopback, pages of
 * this machine, and the routes below `/dev`. A configuration by variables alone is not a sign of development,
 * so they need local chains that no other machine reaches, or the switch.
 */
export const hasDevelopmentRules = (config: Config, hasLocalChains: boolean): boolean =>
  config.security.development_rules ?? (hasLocalChains && isOnLoopback(config))

/** What an operator should know about the development rules of this configuration, if anything. */
export const developmentWarning = (config: Config, hasLocalChains: boolean): string | undefined => {
  const expected = hasLocalChains && isOnLoopback(config)
  const { development_rules } = config.security
  if (development_rules && !expected)
    return 'security.development_rules is on: there is a demo administrator whose keys are in connection.json, webhooks reach http:// and loopback addresses, and pages of localhost may call the API. Never use it in production.'
  if (development_rules === undefined && hasLocalChains && !expected)
    return 'The local chains run without the demo organization and the faucet, because the service is not only on loopback. Set security.development_rules to true to have them all the same.'
  return undefined
}
