import { setTimeout as delay } from 'node:timers/promises'

/** Asks again until the answer is true; fails with the last error or a sentence when it never is. */
export const waitFor = async (
  what: string,
  check: () => boolean | Promise<boolean>,
  { timeoutMs = 60_000, everyMs = 20 } = {},
): Promise<void> => {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    if (await check()) return
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await delay(everyMs)
  }
}
