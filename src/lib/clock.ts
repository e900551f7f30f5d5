import { setTimeout as delay } from 'node:timers/promises'

/** Time comes in through this seam, so that tests can stop and move it. */
export type Clock = {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Resolves after that many milliseconds; rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal ? { signal } : {}).catch((error: unknown) => {
      throw signal?.aborted ? signal.reason : error
    })
  },
}

/** RFC 3339 in UTC with milliseconds, the form of every `*_time` field (spec 2). */
export const toTimestamp = (time: Date | number): string => new Date(time).toISOString()
