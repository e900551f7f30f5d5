import { isWatched, type Shell } from './shell.ts'

const terminalMs = 100
const logMs = 5_000
// Short, so that the line of a backfill with its time left fits into 80 columns.
const barWidth = 12

/** Shows how far something is. */
export type ProgressLine = {
  /** Shows a text if it is time for one; the text is made only then. */
  show(describe: (seconds: number) => string): void
  done(): void
}

/** One updated line on a terminal, cut at its width; else a line now and then. */
export function createProgressLine(
  { stderr, env }: Pick<Shell, 'stderr' | 'env'>,
  now: () => number = () => performance.now(),
): ProgressLine {
  const watched = isWatched(stderr, env)
  let begun: number | undefined
  // On a terminal the first text appears at once; a log gets none of a short command.
  let last = watched ? Number.NEGATIVE_INFINITY : now()
  let shown = false
  return {
    show: (describe) => {
      begun ??= now()
      if (now() - last < (watched ? terminalMs : logMs)) return
      last = now()
      shown = true
      const text = describe((now() - begun) / 1_000)
      stderr.write(
        // A terminal without a size has 0 columns.
        watched ? `\r\u001b[2K${text.slice(0, (stderr.columns || 1_000) - 1)}` : `${text}\n`,
      )
    },
    done: () => {
      if (watched && shown) stderr.write('\r\u001b[2K')
    },
  }
}

/** A bar of fixed width with its percentage. */
export function barText(share: number): string {
  const filled = Math.floor(Math.min(Math.max(share, 0), 1) * barWidth)
  return `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}] ${Math.floor(share * 100)} %`
}

/** The time that is left at a speed. */
export const leftText = (rest: number, perSecond: number): string =>
  perSecond > 0 ? `${durationText(rest / perSecond)} left` : 'unknown left'

/** A length of time as people say it. */
export function durationText(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  if (seconds < 90 * 60) return `${Math.ceil(seconds / 60)} min`
  const hours = Math.floor(seconds / 3_600)
  return hours < 48
    ? `${hours} h ${Math.floor((seconds % 3_600) / 60)} min`
    : `${Math.floor(hours / 24)} days`
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** A number of bytes as people say it. */
export function bytesText(bytes: number): string {
  const step = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1)
  const value = bytes / 1_024 ** step
  return `${step === 0 ? value : value.toFixed(1)} ${units[step]}`
}
