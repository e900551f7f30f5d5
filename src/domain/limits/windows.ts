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
