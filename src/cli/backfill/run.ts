import { backfillChain } from '../../app/chain-commands.ts'
import type { BackfillProgress } from '../../workers/tracker/backfill.ts'
import { audited } from '../audited.ts'
import { chainText, openChainTools, readBlock, readChain } from '../chain-tools.ts'
import { type GlobalOptions, isWatched, note, print, type Shell } from '../shell.ts'
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
    if (outcome.missing.length > 0) shell.setExitCode(1)
  })
}

const terminalMs = 100
const logMs = 5_000
const width = 24

/** Shows progress and remaining time: one updated line on a terminal, else a line now and then. */
export function createBackfillProgress(
  shell: Shell,
  now: () => number = () => performance.now(),
): { report(progress: BackfillProgress): void; done(): void } {
  const watched = isWatched(shell.stderr, shell.env)
  let begun: { time: number; block_number: number } | undefined
  let last = now()
  let shown = false
  return {
    report: (progress) => {
      // The speed is that of this run: an earlier one may have done the most.
      begun ??= { time: now(), block_number: progress.block_number }
      if (now() - last < (watched ? terminalMs : logMs)) return
      last = now()
      shown = true
      const text = describe(progress, {
        blocks: progress.block_number - begun.block_number,
        seconds: (now() - begun.time) / 1_000,
      })
      shell.stderr.write(watched ? `\r\u001b[2K${text}` : `${text}\n`)
    },
    done: () => {
      if (watched && shown) shell.stderr.write('\r\u001b[2K')
    },
  }
}

function describe(
  { from, to, block_number, transfers }: BackfillProgress,
  { blocks, seconds }: { blocks: number; seconds: number },
): string {
  const share = (block_number - from + 1) / (to - from + 1)
  const filled = Math.floor(share * width)
  const bar = '#'.repeat(filled) + '.'.repeat(width - filled)
  const speed = seconds > 0 ? blocks / seconds : 0
  const left = speed > 0 ? durationText((to - block_number) / speed) : 'unknown'
  const number = (value: number) => Math.floor(value).toLocaleString('en')
  return `[${bar}] ${Math.floor(share * 100)} %, block ${number(block_number)} of ${number(to)}, ${number(transfers)} transfers, ${number(speed)} blocks/s, ${left} left`
}

/** A length of time as people say it. */
function durationText(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  if (seconds < 90 * 60) return `${Math.ceil(seconds / 60)} min`
  const hours = Math.floor(seconds / 3_600)
  return hours < 48
    ? `${hours} h ${Math.floor((seconds % 3_600) / 60)} min`
    : `${Math.floor(hours / 24)} days`
}
