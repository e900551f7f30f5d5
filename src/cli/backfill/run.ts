import { backfillChain } from '../../app/chain-commands.ts'
import { audited } from '../audited.ts'
import { openChainTools, readBlock, readService } from '../chain-tools.ts'
import { type GlobalOptions, note, print, type Shell } from '../shell.ts'
import { withDatabase } from '../storage/with-database.ts'
import { createBackfillProgress } from './progress.ts'

type Options = GlobalOptions & { from: string; to?: string }

/** Indexes history and says what was found. */
export async function runBackfillCommand(
  shell: Shell,
  chain: string,
  options: Options,
): Promise<void> {
  const service = readService(chain)
  const from = readBlock('--from', options.from)
  const to = options.to === undefined ? undefined : readBlock('--to', options.to)
  await withDatabase(shell, options, async (opened) => {
    const { config, tools } = await openChainTools(shell, { ...opened, service }, options)
    const { signal } = opened
    const { report, done } = createBackfillProgress(shell)
    const range = { from, ...(to !== undefined && { to }), signal, onProgress: report }
    const request = { chain: service, from, to }
    const outcome = await audited(opened.db, { operation: 'backfill', request }, () =>
      backfillChain(config, tools, range).finally(done),
    )
    const number = (value: number) => value.toLocaleString('en')
    print(
      shell,
      `Blocks ${number(outcome.from)} to ${number(outcome.to)}: ${number(outcome.transfers)} new transfers.`,
    )
    if (outcome.closed > 0) print(shell, `Gaps that are closed now: ${outcome.closed}.`)
    for (const gap of outcome.missing)
      note(
        shell,
        `Incomplete: blocks ${number(gap.from)} to ${number(gap.to)} (${gap.reason}). Add an archive node and retry.`,
      )
    if (outcome.missing.length > 0) process.exitCode = 1
  })
}
