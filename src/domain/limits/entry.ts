import { createSlidingLog, type SlidingLog } from './sliding-log.ts'
import type { CalendarPeriod, CalendarWindows } from './windows.ts'
import { CLOCK_TOLERANCE_MS, DAY_MS, HOUR_MS } from './windows.ts'

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
  if (counter.delta > 0) keep(entry, counter)
  const { start: left, used } = counter
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
