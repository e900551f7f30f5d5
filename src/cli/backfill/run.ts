import { backfillChain } from '../../app/chain-commands.ts'
import type { BackfillProgress } from '../../workers/tracker/backfill.ts'
import { audited } from '../audited.ts'
import { chainText, openChainTools, readBlock, readChain } from '../chain-tools.ts'
import { barText, createProgressLine, leftText } from '../progress.ts'
import { type GlobalOptions, note, print, type Shell } from '../shell.ts'
import { withDatabase } from '../storage/with-database.ts'

type Options = GlobalOptions & { from: string; to?: string }

/** Indexes history and says what was found. */
export async function runBackfillCommand(
  shell: Shell,
  chain: string,
  options: Options,
): Promise<void> {
  const at = readChain(chain)
  const from = readBlock('--from', options.from)
  // Read before the database is opened: a wrong option must not start a server.
  const to = options.to === undefined ? undefined : readBlock('--to', options.to)
  await withDatabase(shell, options, async (opened) => {
    const { config, tools } = await openChainTools(shell, { ...opened, at }, options)
    const { signal } = opened
    const { report, done } = createBackfillProgress(shell)
    const range = { from, ...(to !== undefined && { to }), signal, onProgress: report }
    const request = { chain: chainText(at), from, to }
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
    // Missing blocks are a failure for scripts, although everything else was stored.
    if (outcome.missing.length > 0) shell.setExitCode(1)
  })
}

/** Shows progress and remaining time. */
export function createBackfillProgress(
  shell: Shell,
  now: () => number = () => performance.now(),
): { report(progress: BackfillProgress): void; done(): void } {
  const line = createProgressLine(shell, now)
  let first: number | undefined
  return {
    report: (progress) => {
      // The speed is that of this run: an earlier one may have done the most.
      first ??= progress.block_number
      const blocks = progress.block_number - first
      line.show((seconds) => describe(progress, { blocks, seconds }))
    },
    done: line.done,
  }
}

function describe(
  { from, to, block_number, transfers }: BackfillProgress,
  { blocks, seconds }: { blocks: number; seconds: number },
): string {
  const share = (block_number - from + 1) / (to - from + 1)
  const speed = seconds > 0 ? blocks / seconds : 0
  const number = (value: number) => Math.floor(value).toLocaleString('en')
  return `${barText(share)}, block ${number(block_number)} of ${number(to)}, ${number(transfers)} transfers, ${number(speed)} blocks/s, ${leftText(to - block_number, speed)}`
}
