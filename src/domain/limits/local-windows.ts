// The check of one process by its own counters: without Redis, and while Redis does not answer. With several processes
// (`limits.replicas`) each takes its part of every window.

import { type Decision, describe, fits, type RateLimits, type Room } from './decision.ts'
import { type Counter, countEntry, type Entry } from './entries.ts'
import { expireLog, pushLog, SECOND_MS, waitForLog } from './windows.ts'

const counterRoom = (limit: number, counter: Counter, share: number): number => {
  if (limit < 0) return Number.POSITIVE_INFINITY
  if (share === 1) return limit - counter.used
  // Each of `share` processes may take its part of what was left when they last agreed.
  const part = Math.floor(Math.max(0, limit - counter.base) / share)
  return counter.base + part - counter.used
}

// At least one call per second for each process, or a small limit would block everything.
const secondShare = (limit: number, share: number): number =>
  share === 1 || limit <= 0 ? limit : Math.max(1, Math.floor(limit / share))

/** Decides in this process: checks the four windows, then counts in the four. */
export type TakeLocal = (
  entry: Entry,
  limits: RateLimits,
  cost: number,
  /** The time of day. */
  now: number,
  /** Milliseconds that have passed, which never run backwards. */
  elapsed: number,
  /** How many processes divide the limits among them. */
  share: number,
) => Decision

/** Makes the local check; entries must be rolled to `now` already. */
export const createLocalWindows = (): TakeLocal => {
  // One scratch object: this runs for every gateway call.
  const room: Room = {
    second: 0,
    hour: 0,
    day: 0,
    month: 0,
    second_reset_ms: 0,
    second_wait_ms: 0,
  }
  return (entry, limits, cost, now, elapsed, share) => {
    // Checked before counting: a call counts in all windows or in none.
    const second = limits.per_second_limit
    const limited = second >= 0
    room.hour = counterRoom(limits.per_hour_limit, entry.hour, share)
    room.day = counterRoom(limits.per_day_limit, entry.day, share)
    room.month = counterRoom(limits.per_month_limit, entry.month, share)
    if (limited) {
      const limit = secondShare(second, share)
      room.second = limit - expireLog(entry.log, elapsed)
      // A cost beyond the limit itself never fits; its Retry-After is that of an empty window.
      room.second_wait_ms =
        cost <= room.second || cost > limit
          ? SECOND_MS
          : waitForLog(entry.log, elapsed, cost - room.second)
    } else room.second = Number.POSITIVE_INFINITY
    if (fits(room, cost) && cost > 0) {
      if (limited) pushLog(entry.log, elapsed, cost)
      countEntry(entry, cost)
    }
    if (limited) room.second_reset_ms = waitForLog(entry.log, elapsed, 1)
    return describe(entry, limits, room, cost, now)
  }
}
