import { backfillChain } from '../../app/backfill.ts'
import type { Config } from '../../app/config/schema.ts'
import type { ConnectionFile } from '../../app/connection-file.ts'
import type { WalletService } from '../../chains/chain.ts'
import { silentLog } from '../../lib/log.ts'
import { readConnectionFile } from '../call/target.ts'
import { usageError } from '../cli-error.ts'
import { readConfig } from '../configuration.ts'
import { type GlobalOptions, note, print, type Shell } from '../shell.ts'
import { withDatabase } from '../storage/with-database.ts'
import { createBackfillProgress } from './progress.ts'

type Options = GlobalOptions & { from: string; to?: string }

const tags = new Set(['c', 's', 'p', 't'])

/** Indexes history and says what was found. */
export async function runBackfillCommand(
  shell: Shell,
  chain: string,
  options: Options,
): Promise<void> {
  if (!tags.has(chain)) throw usageError(`There is no history of "${chain}": use c, s, p or t.`)
  const from = readBlock('--from', options.from)
  const to = options.to === undefined ? undefined : readBlock('--to', options.to)
  await withDatabase(shell, options, async ({ db, signal, ...opened }) => {
    const service = chain as WalletService
    const isConfigured = opened.config.chains?.[service] !== undefined
    const config = isConfigured ? opened.config : await withLocal(shell, chain, options)
    const { tell, done } = createBackfillProgress(shell)
    const log = { ...silentLog, warn: (_: object, message: string) => note(shell, message) }
    const tools = { db, env: shell.env, log, service }
    const range = { from, ...(to !== undefined && { to }), signal, onProgress: tell }
    const outcome = await backfillChain(config, tools, range).finally(done)
    const number = (value: number) => value.toLocaleString('en')
    print(
      shell,
      `Blocks ${number(outcome.from)} to ${number(outcome.to)}: ${number(outcome.transfers)} new transfers.`,
    )
    if (outcome.closed > 0) print(shell, `Gaps that are closed now: ${outcome.closed}.`)
    for (const gap of outcome.missing)
      note(
        shell,
        `Incomplete: blocks ${number(gap.from)} to ${number(gap.to)} (${gap.reason}). Add an archive node and do it again.`,
      )
    if (outcome.missing.length > 0) process.exitCode = 1
  })
}

/** The configuration with a local chain of the running service, which no file knows. */
async function withLocal(shell: Shell, chain: string, options: Options): Promise<Config> {
  const { chains } = await readConnectionFile(shell, options).catch(() => ({
    chains: {} as ConnectionFile['chains'],
  }))
  const { kind, network, node_url } = chains[chain] ?? {}
  if (!kind || !network || !node_url) return readConfig(shell, options)
  const networks = { [network]: { upstreams: [{ name: 'local', url: node_url }] } }
  return readConfig(shell, options, { chains: { [chain]: { kind, networks } } })
}

function readBlock(option: string, text: string): number {
  const number = Number(text)
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(number))
    throw usageError(`${option} must be the number of a block.`)
  return number
}
