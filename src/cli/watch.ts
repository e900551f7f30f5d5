import { setTimeout as delay } from 'node:timers/promises'
import type { Output, Shell } from './shell.ts'

const clear = '\u001b[H\u001b[2J'

/** Writes a text again and again until Ctrl-C, and when the window is resized. A failure is shown in its place. */
export async function watchScreen(
  { stdout }: Pick<Shell, 'stdout'>,
  everyMs: number,
  read: () => Promise<string>,
): Promise<void> {
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    while (!stopping.signal.aborted) {
      const text = await read().catch((error: unknown) =>
        error instanceof Error ? error.message : String(error),
      )
      stdout.write(stdout.isTTY ? `${clear}${visibleText(text, stdout)}` : `${text}\n`)
      const resized = new AbortController()
      const wake = () => resized.abort()
      stdout.once('resize', wake)
      const signal = AbortSignal.any([stopping.signal, resized.signal])
      await delay(everyMs, undefined, { signal }).catch(() => {})
      stdout.off('resize', wake)
    }
    // The next prompt begins a line.
    if (stdout.isTTY) stdout.write('\n')
  } finally {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
}

/** What fits into the window: a longer text would scroll, and its beginning could not be seen. */
function visibleText(text: string, { rows = Number.POSITIVE_INFINITY }: Output): string {
  const lines = text.split('\n')
  if (lines.length <= rows) return text
  const shown = Math.max(0, rows - 1)
  return [...lines.slice(0, shown), `… ${lines.length - shown} more lines`].join('\n')
}
