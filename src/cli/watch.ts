import { setTimeout as delay } from 'node:timers/promises'
import type { Shell } from './shell.ts'

const clear = '\u001b[H\u001b[2J'

/** Writes a text again and again until Ctrl-C. A failure is shown in its place. */
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
      stdout.write(`${stdout.isTTY ? clear : ''}${text}\n`)
      await delay(everyMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  } finally {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
}
