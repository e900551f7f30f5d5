// Counts gateway calls by key, method and day, in memory, and stores them in the background. Memory
// is bounded; a crash loses at most the last interval.

import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { addCounts, type MethodUsage, usageKey } from '../../storage/access/method-usage.ts'

/** Calls that were counted and not written down yet. */
export type UsageDelta = Omit<MethodUsage, 'day'>

/** Records the calls of each key and method. */
export type UsageWriter = {
  /** Takes counts that would be lost otherwise. */
  add(deltas: readonly UsageDelta[]): void
  flush(): Promise<void>
  /** Writes what is left and stops. */
  stop(): Promise<void>
}

/** Makes the write-behind of method usage: one statement every few seconds, bounded while it fails. */
export function createUsageWriter(options: {
  clock: Clock
  log: Log
  store(deltas: readonly MethodUsage[]): Promise<void>
  /** Collects what was counted since the last time. */
  collect(): readonly UsageDelta[]
  flushIntervalMs?: number
  stopTimeoutMs?: number
  maxRows?: number
}): UsageWriter {
  const { clock, log, store, collect } = options
  const { flushIntervalMs = 5_000, stopTimeoutMs = 5_000, maxRows = 50_000 } = options
  const stopping = new AbortController()
  const waiting = new Map<string, MethodUsage>()
  let lost = 0
  // Writes run one after the other: two at once could store the counts of a key in the wrong order after a failure.
  let last: Promise<void> = Promise.resolve()

  const put = (row: MethodUsage) => {
    const key = usageKey(row)
    const there = waiting.get(key)
    if (there) addCounts(there, row)
    // Grows only while the database is unreachable; keys and methods that are known are still counted then.
    else if (waiting.size < maxRows) waiting.set(key, { ...row })
    else {
      if (lost === 0) log.error({ max_rows: maxRows }, 'method usage dropped: buffer full')
      lost += row.call_count
    }
  }
  const add = (deltas: readonly UsageDelta[]) => {
    // The day of the collection, not of the call: a call near midnight may count for the next day, by one interval at most.
    const day = new Date(clock.now()).toISOString().slice(0, 10)
    for (const delta of deltas) put({ ...delta, day })
  }

  const write = async () => {
    add(collect())
    if (waiting.size === 0) return
    const rows = [...waiting.values()]
    waiting.clear()
    try {
      await store(rows)
    } catch (error) {
      // Put back, added to what was counted meanwhile.
      for (const row of rows) put(row)
      throw error
    }
  }
  const flush = () => {
    last = last.then(write, write)
    return last
  }

  const run = async () => {
    while (!stopping.signal.aborted) {
      const slept = await clock.sleep(flushIntervalMs, stopping.signal).then(
        () => true,
        () => false,
      )
      if (slept)
        await flush().catch((error: unknown) =>
          log.warn({ err: error }, 'storing method usage failed, will retry'),
        )
    }
  }
  const running = run()

  return {
    add,
    flush,
    stop: async () => {
      stopping.abort()
      const late = new AbortController()
      const expired = clock.sleep(stopTimeoutMs, late.signal).then(() => {
        throw new Error(`not stored within ${stopTimeoutMs} ms`)
      })
      const finish = running.then(flush)
      try {
        await Promise.race([finish, expired])
      } catch (error) {
        log.error({ err: error }, 'the last method usage was not stored')
      } finally {
        finish.catch(() => {})
        expired.catch(() => {})
        late.abort()
      }
    },
  }
}
