// Stores and load generators for the tests of the limits. Production code does not import this folder.

import type { Clock } from '../../../lib/clock.ts'
import type { UsageDelta, UsageStore, UsageTotal } from '../stored-usage.ts'
import { calendarWindows } from '../windows.ts'

/** A clock that is stopped until a test moves it, in either direction. */
export type ManualClock = Clock & { set(now: number): void; step(ms: number): void }

/** Makes a clock that is stopped; sleepers wake when it has moved far enough. */
export const createManualClock = (start: number): ManualClock => {
  let now = start
  const sleepers = new Set<{ wake: () => void; at: number }>()
  const set = (to: number): void => {
    now = to
    for (const sleeper of sleepers) {
      if (sleeper.at > now) continue
      sleepers.delete(sleeper)
      sleeper.wake()
    }
  }
  return {
    now: () => now,
    set,
    step: (ms) => set(now + ms),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted()
        const sleeper = { wake: resolve, at: now + ms }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper)
          reject(signal.reason)
        })
        if (signal?.aborted) reject(signal.reason)
      }),
  }
}

/** A usage store in memory that can be made to fail before or after it has counted. */
export type FakeStore = UsageStore & {
  used(key: Omit<UsageTotal, 'used'>): number
  failure: 'none' | 'refuses' | 'loses_answer' | 'hangs'
  adds: UsageDelta[][]
}

/** Makes a store that remembers batches, as a real one may. */
export const createFakeStore = (): FakeStore => {
  const rows = new Map<string, UsageTotal>()
  const batches = new Set<string>()
  const keyOf = (key: Omit<UsageTotal, 'used'>): string =>
    JSON.stringify([key.organization_id, key.chain, key.period, key.period_start])
  const answer = async <T>(counted: () => T): Promise<T> => {
    if (store.failure === 'hangs') return new Promise<T>(() => {})
    if (store.failure === 'refuses') throw new Error('refused')
    const result = counted()
    if (store.failure === 'loses_answer') throw new Error('connection lost')
    return result
  }
  const store: FakeStore = {
    failure: 'none',
    adds: [],
    used: (key) => rows.get(keyOf(key))?.used ?? 0,
    load: (organization_id, chain, now) =>
      answer(() => {
        const current = calendarWindows(now)
        return [...rows.values()]
          .filter((row) => row.organization_id === organization_id && row.chain === chain)
          .filter((row) => row.period_start === current[row.period])
          .map((row) => ({ ...row }))
      }),
    add: (deltas, batch_id) =>
      answer(() => {
        const fresh = !batches.has(batch_id)
        batches.add(batch_id)
        if (fresh) store.adds.push(deltas.map((delta) => ({ ...delta })))
        return deltas.map(({ delta, ...key }) => {
          const row = rows.get(keyOf(key)) ?? { ...key, used: 0 }
          if (fresh) row.used += delta
          rows.set(keyOf(key), row)
          return { ...row }
        })
      }),
  }
  return store
}
