import type { ChainTools } from '../app/chain-commands.ts'
import type { Config } from '../app/config/schema.ts'
import type { ConnectionFile } from '../app/connection-file.ts'
import type { WalletService } from '../contract/variant.ts'
import { silentLog } from '../lib/log.ts'
import type { Db } from '../storage/pg/database.ts'
import { readConnectionFile } from './call/target.ts'
import { usageError } from './cli-error.ts'
import { readConfig } from './configuration.ts'
import { type GlobalOptions, note, type Shell } from './shell.ts'

const services: ReadonlySet<string> = new Set<WalletService>(['c', 's', 'p', 't'])

/** The chain that a command names. */
export function readService(chain: string): WalletService {
  if (!services.has(chain)) throw usageError(`There is no chain "${chain}": use c, s, p or t.`)
  return chain as WalletService
}

/** The block that an option names. */
export function readBlock(option: string, text: string): number {
  const number = Number(text)
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(number))
    throw usageError(`${option} must be the number of a block.`)
  return number
}

/** What a command needs to open a chain, be it one of the configuration or a local one. */
export async function openChainTools(
  shell: Shell,
  { db, config, service }: { db: Db; config: Config; service: WalletService },
  options: GlobalOptions,
): Promise<{ config: Config; tools: ChainTools }> {
  const isConfigured = config.chains?.[service] !== undefined
  const log = { ...silentLog, warn: (_: object, message: string) => note(shell, message) }
  return {
    config: isConfigured ? config : await withLocal(shell, service, options),
    tools: { db, env: shell.env, log, service },
  }
}

/** The configuration with a local chain of the running service, which no file knows. */
async function withLocal(shell: Shell, chain: string, options: GlobalOptions): Promise<Config> {
  const { chains } = await readConnectionFile(shell, options).catch(() => ({
    chains: {} as ConnectionFile['chains'],
  }))
  const { kind, network, node_url } = chains[chain] ?? {}
  if (!kind || !network || !node_url) return readConfig(shell, options)
  const networks = { [network]: { upstreams: [{ name: 'local', url: node_url }] } }
  return readConfig(shell, options, { chains: { [chain]: { kind, networks } } })
}
