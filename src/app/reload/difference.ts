// What a reload changes: the difference between two validated configurations, as data. Pure; it decides nothing
// about how a change is applied.

import { isDeepStrictEqual } from 'node:util'
import { liveKeys } from '../config/live-keys.ts'
import type { Config } from '../config/schema.ts'
import { type ChainSettings, variantsOf } from '../config/sections/chains.ts'

/** One configured network. */
export type NetworkAt = { chain: string; network: string }

/** A network that stays under its name with other settings. */
export type ChangedNetwork = NetworkAt & {
  /** `nodes`: only the nodes differ, and they can be replaced in place. `settings`: the network is replaced. */
  what: 'nodes' | 'settings'
}

/** The difference between what runs and what a file says. */
export type Difference = {
  added: NetworkAt[]
  changed: ChangedNetwork[]
  removed: NetworkAt[]
  /** Whether anything of `chains` differs, be it a key that concerns no network by itself. */
  isChains: boolean
  /** Keys beside the chains that apply at once. */
  settings: string[]
  /** Keys that apply after the next restart only. */
  restart: string[]
}

/** Compares what runs with a new configuration. Both must be valid, with resolved chains. */
export function compareConfigs(before: Config, after: Config): Difference {
  const [old, next] = [networksOf(before), networksOf(after)]
  const changed: ChangedNetwork[] = []
  for (const [path, { at, settings }] of next) {
    const known = old.get(path)
    if (!known || isDeepStrictEqual(known.settings, settings)) continue
    const isNodes =
      settings.kind === 'evm' &&
      isDeepStrictEqual(withoutNodes(known.settings), withoutNodes(settings))
    changed.push({ ...at, what: isNodes ? 'nodes' : 'settings' })
  }
  const keys = changedKeys(general(before), general(after))
  const isLive = (key: string) =>
    liveKeys.some((live) => key === live || key.startsWith(`${live}.`))
  return {
    added: [...next].flatMap(([path, { at }]) => (old.has(path) ? [] : [at])),
    changed,
    removed: [...old].flatMap(([path, { at }]) => (next.has(path) ? [] : [at])),
    isChains: !isDeepStrictEqual(before.chains, after.chains),
    settings: keys.filter(isLive),
    restart: keys.filter((key) => !isLive(key)),
  }
}

/** Whether a reload has nothing to do. */
export const isEmpty = ({ isChains, settings, restart }: Difference): boolean =>
  !isChains && settings.length === 0 && restart.length === 0

/**
 * What runs after a reload: the live parts of the new configuration in the one that was started. A key that needs a
 * restart differs until there was one, so that every reload names it.
 */
export const mergeLive = (started: Config, after: Config): Config => {
  const { cors_origins: _, ...server } = started.server
  const { replicas } = started.limits
  return {
    ...started,
    chains: after.chains,
    webhooks: after.webhooks,
    limits: { ...after.limits, replicas },
    logging: { ...after.logging, format: started.logging.format },
    server: {
      ...server,
      ...(after.server.cors_origins && { cors_origins: after.server.cors_origins }),
    },
    source: after.source,
  }
}

type NetworkSettings = Record<string, unknown> & { kind: string }

/** Everything that a running network depends on, by its path. */
const networksOf = ({ chains }: Config) =>
  new Map(
    Object.entries(chains).flatMap(([chain, settings]) =>
      Object.keys(settings.networks).map(
        (network) =>
          [
            `${chain}/${network}`,
            { at: { chain, network }, settings: settingsOf(chain, settings, network) },
          ] as const,
      ),
    ),
  )

const settingsOf = (chain: string, settings: ChainSettings, network: string): NetworkSettings => {
  const { networks, default_network, variant, variants, ...own } = settings
  const letters = variantsOf(chain, { ...(variant && { variant }), ...(variants && { variants }) })
  return {
    ...own,
    variants: letters.join(''),
    // The default network is part of `transfer_id`.
    isDefault: network === default_network,
    network: networks[network]!,
  }
}

const withoutNodes = ({ network, ...settings }: NetworkSettings): object => {
  const { upstreams: _, ...rest } = network as { upstreams: unknown }
  return { ...settings, network: rest }
}

const general = ({ chains: _, source: __, ...settings }: Config): Record<string, unknown> =>
  settings

/** The keys whose values differ, as the file names them. */
function changedKeys(before: unknown, after: unknown, path = ''): string[] {
  if (isRecord(before) || isRecord(after)) {
    const [old, next] = [isRecord(before) ? before : {}, isRecord(after) ? after : {}]
    const names = [...new Set([...Object.keys(old), ...Object.keys(next)])]
    return names.flatMap((name) =>
      changedKeys(old[name], next[name], path === '' ? name : `${path}.${name}`),
    )
  }
  return isDeepStrictEqual(before, after) ? [] : [path]
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
