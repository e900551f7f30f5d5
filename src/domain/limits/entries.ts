// Counters of organizations in memory: bounded in number, and rolled with the calendar. The window before is remembered, so
// a clock that jumps ahead and back finds what was spent; a window that a wrong clock opened does not stay closed until its
// time.

import {
  type CalendarPeriod,
  type CalendarWindows,
  CLOCK_TOLERANCE_MS,
  createSlidingLog,
  DAY_MS,
  HOUR_MS,
  type SlidingLog,
} from './windows.ts'

/** One calendar window of one organization and chain. */
export type Counter = {
  period: CalendarPeriod
  start: number
  end: number
  /** What all processes used, as far as this one knows. */
  used: number
  /** `used` when it was last compared with the shared count. */
  base: number
  /** What this process counted and has not handed to the store yet. */
  delta: number
  /** The window before this one, to which a clock that was set right returns. */
  previous_start: number
  previous_used: number
}

/** All that is known of one organization on one chain. */
export type Entry = {
  organization_id: string
  chain: string
  log: SlidingLog
  hour: Counter
  day: Counter
  month: Counter
  /** Set until the stored usage is read; calls wait for it. */
  loading: Promise<void> | undefined
  /** Used since the last look for something to evict. */
  touched: boolean
  /** Waits in the list of entries to flush. */
  dirty: boolean
}

const createCounter = (period: CalendarPeriod): Counter => ({
  period,
  start: Number.NEGATIVE_INFINITY,
  end: Number.NEGATIVE_INFINITY,
  used: 0,
  base: 0,
  delta: 0,
  previous_start: Number.NEGATIVE_INFINITY,
  previous_used: 0,
})

/** An entry that has seen nothing yet. */
export const createEntry = (organization_id: string, chain: string): Entry => ({
  organization_id,
  chain,
  log: createSlidingLog(),
  hour: createCounter('hour'),
  day: createCounter('day'),
  month: createCounter('month'),
  loading: undefined,
  touched: true,
  dirty: false,
})

/** Takes what a counter that is about to roll has not flushed. */
export type KeepDelta = (entry: Entry, counter: Counter) => void

const rollCounter = (
  entry: Entry,
  counter: Counter,
  start: number,
  end: number,
  keep: KeepDelta,
): void => {
  // What was counted in the window that ends still has to be stored under its own start.
  if (counter.delta > 0) keep(entry, counter)
  const { start: left, used } = counter
  // A clock that was set back returns to the window before, with the use that it had.
  counter.used = counter.previous_start === start ? counter.previous_used : 0
  counter.base = counter.used
  counter.previous_start = left
  counter.previous_used = used
  counter.start = start
  counter.end = end
  counter.delta = 0
}

const isOver = ({ start }: Counter, calendar_start: number, now: number): boolean =>
  start < calendar_start || start > now + CLOCK_TOLERANCE_MS

/**
 * Opens new windows where the calendar has moved on. A window that begins a little after the calendar's
 * stays: a clock that was set back must not open a budget that is already spent. One that begins much
 * later was opened by a clock that had jumped ahead: kept, it would count, and close, until that time.
 */
export const rollEntry = (
  entry: Entry,
  calendar: CalendarWindows,
  now: number,
  keep: KeepDelta,
): void => {
  const { hour, day, month, month_end } = calendar
  if (isOver(entry.hour, hour, now)) rollCounter(entry, entry.hour, hour, hour + HOUR_MS, keep)
  if (isOver(entry.day, day, now)) rollCounter(entry, entry.day, day, day + DAY_MS, keep)
  if (isOver(entry.month, month, now)) rollCounter(entry, entry.month, month, month_end, keep)
}

/** Counts admitted calls in the calendar windows. */
export const countEntry = (entry: Entry, cost: number): void => {
  const { hour, day, month } = entry
  hour.used += cost
  hour.delta += cost
  day.used += cost
  day.delta += cost
  month.used += cost
  month.delta += cost
}

/** Learns a shared count of the counter's own window; what is known never shrinks. */
export const adoptUsed = (counter: Counter, used: number): void => {
  if (used > counter.used) counter.used = used
  counter.base = counter.used
}

// Looked at for an idle one before the oldest goes: constant time, also when all are busy.
const CANDIDATES = 64

/** The entries in memory: never more than `max_entries`, the longest unused go first. */
export type Entries = {
  /** The entry, made when there is none. */
  open(organization_id: string, chain: string): Entry
  /** The entry, if it is in memory. */
  find(organization_id: string, chain: string): Entry | undefined
  size(): number
}

type Options = {
  max_entries: number
  /** A new entry: begin to read what is stored of it. */
  opened: (entry: Entry) => void
  /** An entry leaves with counts that are not flushed yet. */
  spill: (entry: Entry) => void
}

/** Holds entries by organization and chain, without making a key string for every call. */
export const createEntries = ({ max_entries, opened, spill }: Options): Entries => {
  // Two levels instead of one joined key: no text is made for a call.
  const organizations = new Map<string, Map<string, Entry>>()
  const order = new Set<Entry>()

  const remove = (entry: Entry): void => {
    order.delete(entry)
    const chains = organizations.get(entry.organization_id)
    chains?.delete(entry.chain)
    if (chains?.size === 0) organizations.delete(entry.organization_id)
  }

  // Second chance instead of true LRU: a call sets a flag, and only evictions move entries.
  const evict = (): void => {
    let seen = 0
    for (const entry of order) {
      seen += 1
      const busy = entry.touched || entry.dirty || entry.loading !== undefined
      if (!busy || seen > CANDIDATES) {
        if (entry.dirty) spill(entry)
        remove(entry)
        return
      }
      entry.touched = false
      order.delete(entry)
      order.add(entry)
    }
  }

  const find = (organization_id: string, chain: string) =>
    organizations.get(organization_id)?.get(chain)

  return {
    find,
    size: () => order.size,
    open: (organization_id, chain) => {
      const found = find(organization_id, chain)
      if (found !== undefined) {
        found.touched = true
        return found
      }
      if (order.size >= max_entries) evict()
      const entry = createEntry(organization_id, chain)
      const chains = organizations.get(organization_id)
      if (chains === undefined) organizations.set(organization_id, new Map([[chain, entry]]))
      else chains.set(chain, entry)
      order.add(entry)
      opened(entry)
      return entry
    },
  }
}
