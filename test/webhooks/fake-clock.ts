import { type Clock, systemClock } from '../../src/lib/clock.ts'

/** A clock that is stopped until a test moves it. */
export type FakeClock = Clock & {
  /** Moves on to a time, and wakes all sleepers until then, in order. */
  moveTo(time: number): Promise<void>
  /** When the next sleeper wakes; undefined without sleepers. */
  nextWake(): number | undefined
}

/** Makes a clock that is at a time. */
export const createFakeClock = (start = Date.parse('2026-03-01T12:00:00Z')): FakeClock => {
  let time = start
  const sleepers = new Set<{ until: number; wake(): void }>()
  const next = () => [...sleepers].sort((a, b) => a.until - b.until)[0]
  return {
    now: () => time,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const sleeper = { until: time + ms, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper)
          reject(signal.reason)
        })
      }),
    nextWake: () => next()?.until,
    moveTo: async (to) => {
      for (let sleeper = next(); sleeper && sleeper.until <= to; sleeper = next()) {
        time = Math.max(time, sleeper.until)
        sleepers.delete(sleeper)
        sleeper.wake()
        // Who wakes may want to sleep again before that time.
        await new Promise((resolve) => setImmediate(resolve))
      }
      time = Math.max(time, to)
    },
  }
}

/** The machine's clock where a test takes either: it is never moved. */
export const realClock: FakeClock = {
  ...systemClock,
  moveTo: async () => {},
  nextWake: () => undefined,
}
