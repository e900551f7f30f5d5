import { setTimeout as delay } from 'node:timers/promises'

/** A check may cost as much as a request: the longer it takes, the less often it is asked. */
const maxEveryMs = 100

/** Asks again until the answer is true; fails with the last error or a sentence when it never is. */
export const waitFor = async (
  what: string,
  check: () => boolean | Promise<boolean>,
  { timeoutMs = 60_000, everyMs = 0 } = {},
): Promise<void> => {
  const begin = Date.now()
  const deadline = begin + timeoutMs
  for (;;) {
    if (await check()) return
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await delay(everyMs || Math.min(Math.max(20, (Date.now() - begin) / 10), maxEveryMs))
  }
}
