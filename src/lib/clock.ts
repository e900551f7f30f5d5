import { setTimeout as delay } from 'node:timers/promises'

/** Time comes in through this seam, so that tests can stop and move it. */
export type Clock = {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Resolves after that many milliseconds; rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

// 24.8 days. A longer timer of Node ends after 1 ms.
const longestTimerMs = 2 ** 31 - 1

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    let left = ms
    do {
      await delay(Math.min(left, longestTimerMs), undefined, signal ? { signal } : {}).catch(
        (error: unknown) => {
          throw signal?.aborted ? signal.reason : error
        },
      )
      left -= longestTimerMs
    } while (left > 0)
  },
}

/** RFC 3339 in UTC with milliseconds, the form of every `*_time` field (spec 2). */
export const toTimestamp = (time: Date | number): string => new Date(time).toISOString()
