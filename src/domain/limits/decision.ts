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
  before: number,
  cost: number,
  wait_ms: number,
): void => {
  const { allowed } = decision
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

type Outcome = { room: Room; cost: number; taken: number; now: number }

const addCalendarWindow = (
  decision: Decision,
  { room, cost, taken, now }: Outcome,
  window: 'hour' | 'day' | 'month',
  limit: number,
  { start, end }: { start: number; end: number },
): void => {
  if (limit < 0) return
  const before = room[window]
  const reset_ms = end - now
  const remaining = Math.max(0, before - taken)
  const state = { window, limit, remaining, reset_ms, seconds: (end - start) / 1_000 }
  addWindow(decision, state, before, cost, reset_ms)
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
    addWindow(decision, state, room.second, cost, room.second_wait_ms)
  }
  const outcome = { room, cost, taken, now }
  addCalendarWindow(decision, outcome, 'hour', limits.per_hour_limit, entry.hour)
  addCalendarWindow(decision, outcome, 'day', limits.per_day_limit, entry.day)
  addCalendarWindow(decision, outcome, 'month', limits.per_month_limit, entry.month)
  return decision
}
