import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '../../../lib/clock.ts'

/** A clock that is stopped until it is moved. */
export type FakeClock = Clock & {
  /** Moves on, waking every sleeper at its time and letting it act. */
  advance(ms: number): Promise<void>
}

/** For tests. */
export function createFakeClock(start = 1_000_000): FakeClock {
  let now = start
  const sleepers = new Set<{ at: number; wake(): void }>()
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted()
        const sleeper = {
          at: now + ms,
          wake: () => {
            sleepers.delete(sleeper)
            resolve()
          },
        }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper)
          reject(signal.reason)
        })
      }),
    advance: async (ms) => {
      const until = now + ms
      for (;;) {
        await turn()
        await turn()
        const next = [...sleepers].sort((a, b) => a.at - b.at)[0]
        if (!next || next.at > until) break
        now = Math.max(now, next.at)
        next.wake()
      }
      now = until
      await turn()
    },
  }
}
