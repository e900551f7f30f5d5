import type { ChainTools } from '../app/chain-commands.ts'
import type { Config } from '../app/config/schema.ts'
import type { ConnectionFile } from '../app/connection-file.ts'
import { silentLog } from '../lib/log.ts'
import type { Db } from '../storage/pg/database.ts'
import { readConnectionFile } from './call/target.ts'
import { usageError } from './cli-error.ts'
import { readConfig } from './configuration.ts'
import { type GlobalOptions, note, type Shell } from './shell.ts'

/** A chain, and a network of it other than the default one. */
export type ChainName = { chain: string; network?: string }

const namePattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

/** The chain that a command names: `base`, or `base/sepolia`. */
export function readChain(text: string): ChainName {
  const [chain = '', network, ...rest] = text.split('/')
  const names = network === undefined ? [chain] : [chain, network]
  if (rest.length > 0 || !names.every((name) => namePattern.test(name)))
    throw usageError(
      `"${text}" is not the name of a chain: use c, or c/ropsten for a network of it.`,
    )
  return network === undefined ? { chain } : { chain, network }
}

/** The same as text. */
export const chainText = ({ chain, network }: ChainName): string =>
  network === undefined ? chain : `${chain}/${network}`

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
  { db, config, at }: { db: Db; config: Config; at: ChainName },
  options: GlobalOptions,
): Promise<{ config: Config; tools: ChainTools }> {
  const isConfigured = config.chains?.[at.chain] !== undefined
  const log = { ...silentLog, warn: (_: object, message: string) => note(shell, message) }
  return {
    // Chains of the embedded mode are in no file; the connection file of the running service names
    // them.
    config: isConfigured ? config : await withLocal(shell, at.chain, options),
    tools: { db, env: shell.env, log, at },
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
