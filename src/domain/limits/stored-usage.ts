// Counters of hour, day and month in the database. A batch counts once: if the answer to its commit was lost, the next
// attempt asks the server by the transaction id whether it was committed. What a process has not flushed when it is killed
// is not counted.

import { sql } from 'kysely'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { addRateUsage, loadRateUsage } from '../../storage/access/rate-usage.ts'
import type { Db } from '../../storage/pg/database.ts'
import { adoptUsed, type Counter, type Entry } from './entries.ts'
import { type CalendarPeriod, calendarWindows, DAY_MS, HOUR_MS, monthEnd } from './windows.ts'

/** Names one stored counter; `period_start` is in milliseconds. */
type UsageKey = {
  organization_id: string
  chain: string
  period: CalendarPeriod
  period_start: number
}

/** An amount to add to a stored counter. */
export type UsageDelta = UsageKey & { delta: number }

/** A stored counter. */
export type UsageTotal = UsageKey & { used: number }

/** Where hour, day and month counters outlive the process. */
export type UsageStore = {
  /** The counters of the windows that hold `now`. */
  load(organization_id: string, chain: string, now: number): Promise<readonly UsageTotal[]>
  /**
   * Adds all or nothing and returns the new totals. Keys are unique and sorted. A batch that
   * failed is repeated unchanged under the same id, so that a store can detect that the first
   * attempt did reach it.
   */
  add(deltas: readonly UsageDelta[], batch_id: string): Promise<readonly UsageTotal[]>
}

const PERIODS: readonly CalendarPeriod[] = ['hour', 'day', 'month']

const addDeltas = async (db: Db, deltas: readonly UsageDelta[]): Promise<UsageTotal[]> => {
  const rows = deltas.map(({ delta, period_start, ...key }) => ({
    ...key,
    period_start: new Date(period_start),
    used: delta,
  }))
  const totals = await addRateUsage(db, rows)
  return totals.map((total) => ({ ...total, period_start: total.period_start.getTime() }))
}

// Adding zero returns the totals of exactly these counters.
const readTotals = (db: Db, deltas: readonly UsageDelta[]): Promise<UsageTotal[]> =>
  addDeltas(
    db,
    deltas.map((delta) => ({ ...delta, delta: 0 })),
  )

const transactionId = async (db: Db): Promise<string> => {
  const { rows } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(db)
  return rows[0]!.id
}

const isCommitted = async (db: Db, id: string): Promise<boolean> => {
  const { rows } = await sql<{ status: string | null }>`
    select pg_xact_status(${id}::xid8) as status`.execute(db)
  const status = rows[0]!.status
  // Neither adding again nor leaving it out would be right now. The batch is repeated later.
  if (status === 'in progress') throw new Error(`transaction ${id} is still in progress`)
  return status === 'committed'
}

/** Keeps usage in the database; a batch counts once even when the answer to its commit was lost. */
export const createUsageStore = (db: Db): UsageStore => {
  let attempt: { batch_id: string; transaction: string } | undefined
  return {
    load: async (organization_id, chain, now) => {
      const used = await loadRateUsage(db, organization_id, chain, new Date(now))
      const starts = calendarWindows(now)
      return PERIODS.map((period) => ({
        organization_id,
        chain,
        period,
        period_start: starts[period],
        used: used[period],
      }))
    },
    add: async (deltas, batch_id) => {
      // The connection broke after the commit: the server knows by the transaction id whether it counted.
      if (attempt?.batch_id === batch_id && (await isCommitted(db, attempt.transaction)))
        return await readTotals(db, deltas)
      return await db.transaction().execute(async (transaction) => {
        attempt = { batch_id, transaction: await transactionId(transaction) }
        return await addDeltas(transaction, deltas)
      })
    },
  }
}

// Entries of one statement, with up to three counters each.
const BATCH_ENTRIES = 4_000

/** Carries counts to the store in the background. */
export type WriteBehind = {
  /** The entry has counts to flush. */
  mark(entry: Entry): void
  /** Holds the counts of a window that ended, or of an entry that leaves memory. */
  keep(entry: Entry, counter: Counter): void
  /** The entry leaves memory. */
  spill(entry: Entry): void
  /** Stores what was counted so far; rejects when the store does, and loses nothing by it. */
  flush(): Promise<void>
  /** Counts waiting outside of entries, and counts given up because there was no room for them. */
  status(): { kept: number; lost: number }
}

type Options = {
  store: UsageStore
  ids: Ids
  log: Log
  find: (organization_id: string, chain: string) => Entry | undefined
  /** Bound on counts that wait outside of entries. */
  max_kept: number
}

type Batch = { id: string; deltas: UsageDelta[]; entries: Entry[] }

const COUNTERS = ['hour', 'day', 'month'] as const

const keyOf = (entry: Entry, counter: Counter): string =>
  `${entry.organization_id}\n${entry.chain}\n${counter.period}\n${counter.start}`

const endOf = ({ period, period_start }: UsageTotal): number => {
  if (period === 'month') return monthEnd(period_start)
  return period_start + (period === 'day' ? DAY_MS : HOUR_MS)
}

/** Brings a stored total into the entry: totals of later windows open them, earlier ones are over. */
export const adoptTotal = (
  entry: Entry,
  total: UsageTotal,
  keep: (entry: Entry, counter: Counter) => void,
): void => {
  const counter = entry[total.period]
  // The window has rolled while the statement ran.
  if (total.period_start < counter.start) return
  if (total.period_start > counter.start) {
    if (counter.delta > 0) keep(entry, counter)
    counter.start = total.period_start
    counter.end = endOf(total)
    counter.used = 0
    counter.delta = 0
  }
  adoptUsed(counter, total.used + counter.delta)
}

/** Collects counts and writes each batch in one statement, repeating it until it succeeds. */
export const createWriteBehind = ({ store, ids, log, find, max_kept }: Options): WriteBehind => {
  const dirty = new Set<Entry>()
  const kept = new Map<string, UsageDelta>()
  let lost = 0
  let batch: Batch | undefined
  let last = Promise.resolve()

  const collect = (into: Map<string, UsageDelta>, entry: Entry, counter: Counter): void => {
    if (counter.delta === 0) return
    const key = keyOf(entry, counter)
    const waiting = into.get(key)
    if (waiting !== undefined) waiting.delta += counter.delta
    else {
      const { organization_id, chain } = entry
      const { period, start: period_start, delta } = counter
      into.set(key, { organization_id, chain, period, period_start, delta })
    }
    counter.delta = 0
  }

  const keep = (entry: Entry, counter: Counter): void => {
    collect(kept, entry, counter)
    if (kept.size <= max_kept) return
    const [oldest] = kept
    if (oldest === undefined) return
    kept.delete(oldest[0])
    if (lost === 0) log.error({ max_kept }, 'usage counts dropped: the store is unreachable')
    lost += oldest[1].delta
  }

  const nextBatch = (entries: number): Batch => {
    const deltas = new Map<string, UsageDelta>()
    for (const [key, delta] of kept) {
      if (deltas.size >= BATCH_ENTRIES) break
      deltas.set(key, delta)
      kept.delete(key)
    }
    const taken: Entry[] = []
    for (const entry of dirty) {
      if (taken.length >= entries) break
      taken.push(entry)
      for (const name of COUNTERS) collect(deltas, entry, entry[name])
    }
    // To the back, so that busy entries do not keep the others from their turn.
    for (const entry of taken) {
      dirty.delete(entry)
      dirty.add(entry)
    }
    // Processes that write the same rows must lock them in the same order.
    const sorted = [...deltas].sort(([left], [right]) => (left < right ? -1 : 1))
    return { id: ids.uuid(), deltas: sorted.map(([, delta]) => delta), entries: taken }
  }

  const settle = (entries: readonly Entry[]): void => {
    for (const entry of entries) {
      if (entry.hour.delta + entry.day.delta + entry.month.delta > 0) continue
      entry.dirty = false
      dirty.delete(entry)
    }
  }

  const send = async ({ id, deltas, entries }: Batch): Promise<void> => {
    const totals = deltas.length === 0 ? [] : await store.add(deltas, id)
    // Only after the store has answered: until then the same batch is repeated under the same id.
    batch = undefined
    for (const total of totals) {
      const entry = find(total.organization_id, total.chain)
      // A total of a window that has rolled since says nothing about the new one.
      if (entry?.[total.period].start === total.period_start) adoptTotal(entry, total, keep)
    }
    settle(entries)
  }

  const drain = async (): Promise<void> => {
    if (batch !== undefined) await send(batch)
    let left = dirty.size
    do {
      const entries = Math.min(left, BATCH_ENTRIES)
      left -= entries
      batch = nextBatch(entries)
      await send(batch)
    } while (left > 0 || kept.size > 0)
  }

  return {
    keep,
    mark: (entry) => {
      if (entry.dirty) return
      entry.dirty = true
      dirty.add(entry)
    },
    spill: (entry) => {
      for (const name of COUNTERS) keep(entry, entry[name])
      entry.dirty = false
      dirty.delete(entry)
    },
    flush: () => {
      // One at a time, also after a failure: two would send the same batch twice.
      last = last.then(drain, drain)
      return last
    },
    status: () => ({ kept: kept.size, lost }),
  }
}
