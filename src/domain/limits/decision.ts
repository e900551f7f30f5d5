import type { Entry } from './entry.ts'
import type { RateLimits } from './resolve.ts'
import type { WindowName } from './windows.ts'

/** One limited window as it stands after a decision. */
type WindowState = {
  window: WindowName
  limit: number
  remaining: number
  /** Until more becomes available. */
  reset_ms: number
  /** Length of the window. */
  seconds: number
}

/** The answer to one call, or to a batch taken as a whole. */
export type Decision = {
  allowed: boolean
  /** Refused: the window that stays closed longest. Admitted: the one that runs out first. */
  window: WindowName | undefined
  /** Of that window; -1 when no window is limited. */
  limit: number
  /** Of that window; -1 when no window is limited. */
  remaining: number
  /** 0 when admitted. */
  retry_after_ms: number
  /** Every limited window, for the response headers. */
  windows: WindowState[]
}

/** How much fits into each window before the call; Infinity where there is no limit. */
export type Room = {
  second: number
  hour: number
  day: number
  month: number
  /** Until the sliding window has room for one more call than now. */
  second_reset_ms: number
  /** Until the sliding window has room for this cost. */
  second_wait_ms: number
}

/** Whether the cost fits into all four windows. */
export const fits = (room: Room, cost: number): boolean =>
  cost <= room.second && cost <= room.hour && cost <= room.day && cost <= room.month

const addWindow = (
  decision: Decision,
  state: WindowState,
  allowed: boolean,
  before: number,
  cost: number,
  wait_ms: number,
): void => {
  decision.windows.push(state)
  const decisive = allowed
    ? // Of two windows equally full the longer one matters: it stays empty longer.
      decision.window === undefined || state.remaining <= decision.remaining
    : cost > before && (decision.window === undefined || wait_ms > decision.retry_after_ms)
  if (!decisive) return
  decision.window = state.window
  decision.limit = state.limit
  decision.remaining = state.remaining
  if (!allowed) decision.retry_after_ms = wait_ms
}

/** Describes an outcome; `room` is what there was before it. */
export const describe = (
  entry: Entry,
  limits: RateLimits,
  room: Room,
  cost: number,
  now: number,
): Decision => {
  const allowed = fits(room, cost)
  const decision: Decision = {
    allowed,
    window: undefined,
    limit: -1,
    remaining: -1,
    retry_after_ms: 0,
    windows: [],
  }
  const taken = allowed ? cost : 0
  if (limits.per_second_limit >= 0) {
    const state: WindowState = {
      window: 'second',
      limit: limits.per_second_limit,
      remaining: Math.max(0, room.second - taken),
      reset_ms: room.second_reset_ms,
      seconds: 1,
    }
    addWindow(decision, state, allowed, room.second, cost, room.second_wait_ms)
  }
  const { hour, day, month } = entry
  if (limits.per_hour_limit >= 0) {
    const state: WindowState = {
      window: 'hour',
      limit: limits.per_hour_limit,
      remaining: Math.max(0, room.hour - taken),
      reset_ms: hour.end - now,
      seconds: 3_600,
    }
    addWindow(decision, state, allowed, room.hour, cost, state.reset_ms)
  }
  if (limits.per_day_limit >= 0) {
    const state: WindowState = {
      window: 'day',
      limit: limits.per_day_limit,
      remaining: Math.max(0, room.day - taken),
      reset_ms: day.end - now,
      seconds: 86_400,
    }
    addWindow(decision, state, allowed, room.day, cost, state.reset_ms)
  }
  if (limits.per_month_limit >= 0) {
    const state: WindowState = {
      window: 'month',
      limit: limits.per_month_limit,
      remaining: Math.max(0, room.month - taken),
      reset_ms: month.end - now,
      seconds: (month.end - month.start) / 1_000,
    }
    addWindow(decision, state, allowed, room.month, cost, state.reset_ms)
  }
  return decision
}
