import { setImmediate as turn } from 'node:timers/promises'
import { type Clock, systemClock } from '../../../lib/clock.ts'

const minute = 60_000

/** A clock whose long waits end only when a test moves it. */
export type JumpingClock = Clock & {
  /** How many waits end by themselves. While there is one, something may still be sent. */
  shortSleeps(): number
  /** Moves on by minutes, one after the other. */
  jump(minutes: number): Promise<void>
}

/** The clock of the machine, whose long waits end only when the test moves it. */
export const createJumpingClock = (): JumpingClock => {
  let shift = 0
  let shortSleeps = 0
  const sleepers = new Set<{ at: number; wake(): void }>()
  const now = () => Date.now() + shift
  return {
    now,
    sleep: (ms: number, signal?: AbortSignal): Promise<void> => {
      if (ms < 30_000) {
        shortSleeps++
        return systemClock.sleep(ms, signal).finally(() => {
          shortSleeps--
        })
      }
      // As the clock of the machine does: an abort before the wait would not be announced again.
      if (signal?.aborted) return Promise.reject(signal.reason)
      return new Promise((resolve, reject) => {
        const sleeper = { at: now() + ms, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper)
          reject(signal.reason)
        })
      })
    },
    shortSleeps: () => shortSleeps,
    jump: async (minutes: number) => {
      for (let count = 0; count < minutes; count++) {
        shift += minute
        for (const sleeper of sleepers) {
          if (sleeper.at > now()) continue
          sleepers.delete(sleeper)
          sleeper.wake()
        }
        await turn()
      }
    },
  }
}
