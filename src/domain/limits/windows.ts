/** The four windows of a rate limit. */
export type WindowName = 'second' | 'hour' | 'day' | 'month'

/** The windows that follow the UTC calendar and outlive the process. */
export type CalendarPeriod = 'hour' | 'day' | 'month'

/** Length of the sliding window. */
export const SECOND_MS = 1_000
/** Length of an hour. */
export const HOUR_MS = 3_600_000
/** Length of a UTC day, which has no leap seconds in Unix time. */
export const DAY_MS = 86_400_000

/** How far a window may begin in the future: clocks of processes differ, and are set back a little. */
export const CLOCK_TOLERANCE_MS = 300_000

/** Where the calendar windows around one moment begin, and where its month ends. */
export type CalendarWindows = { hour: number; day: number; month: number; month_end: number }

/** The UTC hour, day and month that hold this moment. */
export const calendarWindows = (now: number): CalendarWindows => {
  const date = new Date(now)
  const year = date.getUTCFullYear()
  const month = date.getUTCMonth()
  return {
    hour: now - (now % HOUR_MS),
    day: now - (now % DAY_MS),
    month: Date.UTC(year, month),
    month_end: Date.UTC(year, month + 1),
  }
}

/** The end of the month that begins at this moment. */
export const monthEnd = (start: number): number => calendarWindows(start).month_end

/** Looks up calendar windows, doing date arithmetic only when the hour changes. */
export const createCalendar = (): ((now: number) => CalendarWindows) => {
  let current: CalendarWindows = { hour: Number.NaN, day: 0, month: 0, month_end: 0 }
  return (now) => {
    const into = now - current.hour
    if (!(into >= 0 && into < HOUR_MS)) current = calendarWindows(now)
    return current
  }
}

/**
 * What was admitted in the last second, as a ring of (millisecond, count) pairs. Calls of one
 * millisecond share a pair, so a log holds at most a thousand of them whatever the limit is.
 */
export type SlidingLog = { pairs: Float64Array; head: number; size: number; sum: number }

const FEW_PAIRS = 8
const MANY_PAIRS = 64

/** An empty log. */
export const createSlidingLog = (): SlidingLog => ({
  pairs: new Float64Array(FEW_PAIRS * 2),
  head: 0,
  size: 0,
  sum: 0,
})

const at = (log: SlidingLog, index: number): number =>
  ((log.head + index) * 2) & (log.pairs.length - 1)

/** Forgets what is a second old; returns what remains. */
export const expireLog = (log: SlidingLog, now: number): number => {
  if (log.size === 0) return 0
  const horizon = now - SECOND_MS
  while (log.size > 0 && log.pairs[at(log, 0)]! <= horizon) {
    log.sum -= log.pairs[at(log, 0) + 1]!
    log.head += 1
    log.size -= 1
  }
  // A ring that one burst made large is given back once it runs empty.
  if (log.size === 0) {
    log.head = 0
    if (log.pairs.length > MANY_PAIRS * 2) log.pairs = new Float64Array(FEW_PAIRS * 2)
  }
  return log.sum
}

const grow = (log: SlidingLog): void => {
  const pairs = new Float64Array(log.pairs.length * 2)
  for (let index = 0; index < log.size; index += 1) {
    const from = at(log, index)
    pairs[index * 2] = log.pairs[from]!
    pairs[index * 2 + 1] = log.pairs[from + 1]!
  }
  log.pairs = pairs
  log.head = 0
}

/** Adds admitted calls; `now` must not be before the last one. */
export const pushLog = (log: SlidingLog, now: number, cost: number): void => {
  log.sum += cost
  if (log.size > 0) {
    const last = at(log, log.size - 1)
    if (log.pairs[last] === now) {
      log.pairs[last + 1]! += cost
      return
    }
  }
  if (log.size * 2 === log.pairs.length) grow(log)
  const next = at(log, log.size)
  log.pairs[next] = now
  log.pairs[next + 1] = cost
  log.size += 1
}

/** Milliseconds until that many calls have left the log; a full second when they never will. */
export const waitForLog = (log: SlidingLog, now: number, leaving: number): number => {
  let left = leaving
  for (let index = 0; index < log.size; index += 1) {
    const pair = at(log, index)
    left -= log.pairs[pair + 1]!
    if (left <= 0) return log.pairs[pair]! + SECOND_MS - now
  }
  return SECOND_MS
}
