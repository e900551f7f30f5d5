import type { Log } from '../../lib/log.ts'
import { type Decision, describe, fits, type Room } from './decision.ts'
import { adoptUsed, countEntry, type Entry, type KeepDelta, rollEntry } from './entry.ts'
import type { RateLimits } from './resolve.ts'
import { pushLog } from './sliding-log.ts'
import { createCalendar } from './windows.ts'

const COOLDOWN_MS = 1_000
const MAX_IN_FLIGHT = 10_000

/** The connection that runs the limit script (`LIMIT_SCRIPT`). */
export type LimitScript = {
  /** Whether a call has a chance now. */
  ready(): boolean
  /** Runs the script; must settle within a bounded time. */
  run(keys: readonly string[], args: readonly number[]): Promise<unknown>
}

/** Decides by the windows that all processes share. */
export type SharedWindows = {
  take(entry: Entry, limits: RateLimits, cost: number): Decision | Promise<Decision>
  healthy(): boolean
}

type Options = {
  redis: LimitScript
  log: Log
  elapsed: () => number
  keep: KeepDelta
  counted: (entry: Entry) => void
  fallback: (entry: Entry, limits: RateLimits, cost: number) => Decision
}

type Reply = [
  now: number,
  hour: number,
  hour_used: number,
  day: number,
  day_used: number,
  month: number,
  month_used: number,
  second_used: number,
  second_reset_ms: number,
  second_wait_ms: number,
]

const isReply = (reply: unknown): reply is Reply =>
  Array.isArray(reply) && reply.length === 10 && reply.every(Number.isSafeInteger)

const limitRoom = (limit: number, used: number): number =>
  limit < 0 ? Number.POSITIVE_INFINITY : limit - used

const floorStart = (start: number): number => (Number.isFinite(start) ? start : 0)

/** Makes the shared check, which falls back to the local one while Redis does not answer. */
export const createSharedWindows = ({
  redis,
  log,
  elapsed,
  keep,
  counted,
  fallback,
}: Options): SharedWindows => {
  const calendar = createCalendar()
  let healthy = true
  let retry_at = 0
  let in_flight = 0

  const available = (): boolean => {
    if (!redis.ready() || in_flight >= MAX_IN_FLIGHT) return false
    if (healthy) return true
    // One call in a while tries whether Redis is back; the others do not wait for it.
    const now = elapsed()
    if (now < retry_at) return false
    retry_at = now + COOLDOWN_MS
    return true
  }

  const failed = (error: unknown): void => {
    retry_at = elapsed() + COOLDOWN_MS
    if (healthy)
      log.warn({ err: error }, 'redis unreachable: limits are divided among the replicas')
    healthy = false
  }

  const accept = (entry: Entry, limits: RateLimits, cost: number, reply: Reply): Decision => {
    const [now, hour, hour_used, day, day_used, month, month_used] = reply
    const [, , , , , , , second_used, second_reset_ms, second_wait_ms] = reply
    rollEntry(entry, calendar(now), now, keep)
    const room: Room = {
      second: limitRoom(limits.per_second_limit, second_used),
      hour: limitRoom(limits.per_hour_limit, hour_used),
      day: limitRoom(limits.per_day_limit, day_used),
      month: limitRoom(limits.per_month_limit, month_used),
      second_reset_ms,
      second_wait_ms,
    }
    const taken = fits(room, cost) ? cost : 0
    if (taken > 0) {
      // Counted here as well: for the store, and for the time when Redis is away.
      if (limits.per_second_limit >= 0) pushLog(entry.log, elapsed(), cost)
      countEntry(entry, cost)
      counted(entry)
    }
    if (entry.hour.start === hour) adoptUsed(entry.hour, hour_used + taken)
    if (entry.day.start === day) adoptUsed(entry.day, day_used + taken)
    if (entry.month.start === month) adoptUsed(entry.month, month_used + taken)
    return describe(entry, limits, room, cost, now)
  }

  const ask = async (entry: Entry, limits: RateLimits, cost: number): Promise<Decision> => {
    const tag = `limits:{${entry.organization_id}:${entry.chain}}`
    const { hour, day, month } = entry
    in_flight += 1
    try {
      const reply = await redis.run(
        [`${tag}:windows`, `${tag}:second`],
        [
          cost,
          limits.per_second_limit,
          limits.per_hour_limit,
          limits.per_day_limit,
          limits.per_month_limit,
          floorStart(hour.start),
          hour.used,
          floorStart(day.start),
          day.used,
          floorStart(month.start),
          month.used,
        ],
      )
      if (!isReply(reply)) throw new TypeError('redis gave no answer of the limit script')
      if (!healthy) log.info({}, 'redis reachable again: limits are shared')
      healthy = true
      return accept(entry, limits, cost, reply)
    } catch (error) {
      failed(error)
      return fallback(entry, limits, cost)
    } finally {
      in_flight -= 1
    }
  }

  return {
    take: (entry, limits, cost) =>
      available() ? ask(entry, limits, cost) : fallback(entry, limits, cost),
    healthy: () => healthy && redis.ready(),
  }
}
