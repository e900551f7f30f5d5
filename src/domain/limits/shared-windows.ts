import type { Log } from '../../lib/log.ts'
import type { RedisConnection } from '../../storage/redis/redis.ts'
import { type Decision, describe, fits, type RateLimits, type Room } from './decision.ts'
import { adoptUsed, countEntry, type Entry, type KeepDelta, rollEntry } from './entries.ts'
import { createCalendar, pushLog } from './windows.ts'

// While Redis fails, one call per second tries it. The others use the local windows at once.
const COOLDOWN_MS = 1_000
// Bound on calls that wait for Redis. Beyond it the local windows decide, so a slow Redis cannot fill the memory.
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
  /** Whether a server that has lost its counts admits nothing for a second. */
  isStrict?: boolean
}

// In the order in which the script returns them. All are integers: Lua numbers would lose their
// fractions.
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

// A reply of another form is a fault of the script or of a proxy, and counts as a failure.
const isReply = (reply: unknown): reply is Reply =>
  Array.isArray(reply) && reply.length === 10 && reply.every(Number.isSafeInteger)

const limitRoom = (limit: number, used: number): number =>
  limit < 0 ? Number.POSITIVE_INFINITY : limit - used

// A window that has never begun has no finite start, which Lua could not read as an integer.
const floorStart = (start: number): number => (Number.isFinite(start) ? start : 0)

/** Makes the shared check, which falls back to the local one while Redis does not answer. */
export const createSharedWindows = ({
  redis,
  log,
  elapsed,
  keep,
  counted,
  fallback,
  isStrict = false,
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
    // The clock of Redis decides about the windows: processes with wrong clocks still share one second.
    rollEntry(entry, calendar(now), now, keep)
    const room: Room = {
      second: limitRoom(limits.per_second_limit, second_used),
      hour: limitRoom(limits.per_hour_limit, hour_used),
      day: limitRoom(limits.per_day_limit, day_used),
      month: limitRoom(limits.per_month_limit, month_used),
      second_reset_ms,
      second_wait_ms,
    }
    // The script has decided the same; its reply has the counts of before.
    const taken = fits(room, cost) ? cost : 0
    if (taken > 0) {
      // Counted here as well: for the store, and for the time when Redis is unreachable.
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
    // The braces put both keys into one slot of a Redis cluster, as one script requires.
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
          isStrict ? 1 : 0,
        ],
      )
      if (!isReply(reply)) throw new TypeError('redis gave no answer of the limit script')
      if (!healthy) log.info({}, 'redis reachable again: limits are shared')
      healthy = true
      return accept(entry, limits, cost, reply)
    } catch (error) {
      // A call that Redis may have counted is counted again here: the limit is then reached early, never late.
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

/**
 * Checks and counts all four windows in one call. Keys: the hash of the calendar windows, the
 * list of (millisecond, count) pairs of the last second. Arguments: cost, the four limits, then
 * start and count of the caller's hour, day and month, then whether lost counts close the second.
 *
 * The time is the server's, so the callers' clocks do not matter. The caller's counts only raise
 * what is stored: they bring a server that lost its data back to what the callers remember.
 */
export const LIMIT_SCRIPT = `
local HOUR, DAY, SECOND = 3600000, 86400000, 1000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local cost, second_limit = tonumber(ARGV[1]), tonumber(ARGV[2])

local today = now - now % DAY
-- Days since 0000-03-01: years that begin in March have the leap day at their end.
local z = today / DAY + 719468
local doe = z % 146097
local yoe = math.floor(
  (doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
local mp = math.floor((5 * doy + 2) / 153)
local starts = { now - now % HOUR, today, today - (doy - math.floor((153 * mp + 2) / 5)) * DAY }

local state = redis.call('HMGET', KEYS[1],
  'at', 'passed', 'second', 'hour', 'hour_used', 'day', 'day_used', 'month', 'month_used',
  'hour_before', 'hour_before_used', 'day_before', 'day_before_used',
  'month_before', 'month_before_used')

-- The last second is measured in time that passed, which does not run backwards with the clock.
local passed = now
if state[1] then passed = tonumber(state[2]) + math.max(0, now - tonumber(state[1])) end

local used, fits = {}, true
local befores, befores_used = {}, {}
for i = 1, 3 do
  local start, count = tonumber(state[2 + 2 * i]), tonumber(state[3 + 2 * i])
  local before, before_used = tonumber(state[8 + 2 * i]) or 0, tonumber(state[9 + 2 * i]) or 0
  -- One that begins much later was opened while the clock of the server had jumped ahead; the window
  -- before it is remembered, so that what was spent of it stays spent.
  if start ~= nil and start >= starts[i] and start <= now + 300000 then
    starts[i] = start
  else
    local known = 0
    if before == starts[i] then known = before_used end
    before, before_used = start or 0, count or 0
    count = known
  end
  befores[i], befores_used[i] = before, before_used
  if tonumber(ARGV[4 + 2 * i]) == starts[i] then count = math.max(count, tonumber(ARGV[5 + 2 * i])) end
  used[i] = count
  local limit = tonumber(ARGV[2 + i])
  if limit >= 0 and count + cost > limit then fits = false end
end

-- The server knows nothing of an organization that the caller has counted before: its data are lost, and with them the
-- calls of the last second. As many as possible may have been admitted in it.
if ARGV[12] == '1' and not state[1] and second_limit > 0 and used[1] + used[2] + used[3] > 0 then
  redis.call('DEL', KEYS[2])
  redis.call('RPUSH', KEYS[2], passed, second_limit)
  redis.call('PEXPIRE', KEYS[2], 2 * SECOND)
  state[3] = second_limit
end

local second, wait, reset = 0, SECOND, SECOND
local logged = tonumber(state[3]) or 0
local tail = {}
if second_limit >= 0 then
  tail = redis.call('LRANGE', KEYS[2], -2, -1)
  if #tail > 0 and tonumber(tail[1]) <= passed - SECOND then
    redis.call('DEL', KEYS[2])
    tail = {}
  end
  if #tail > 0 then
    second = logged
    local head = redis.call('LRANGE', KEYS[2], 0, 1)
    while tonumber(head[1]) <= passed - SECOND do
      redis.call('LPOP', KEYS[2], 2)
      second = second - head[2]
      head = redis.call('LRANGE', KEYS[2], 0, 1)
    end
    reset = head[1] + SECOND - passed
  end
  if second + cost > second_limit then
    fits = false
    local leaving = second + cost - second_limit
    if cost <= second_limit then
      local log = redis.call('LRANGE', KEYS[2], 0, -1)
      for i = 1, #log, 2 do
        leaving = leaving - log[i + 1]
        if leaving <= 0 then
          wait = log[i] + SECOND - passed
          break
        end
      end
    end
  end
end

local take = 0
if fits then take = cost end
if second_limit >= 0 then logged = second + take end
if take > 0 and second_limit >= 0 then
  if #tail > 0 and tonumber(tail[1]) == passed then
    redis.call('LSET', KEYS[2], -1, tail[2] + take)
  else
    redis.call('RPUSH', KEYS[2], passed, take)
  end
  redis.call('PEXPIRE', KEYS[2], 2 * SECOND)
end
redis.call('HSET', KEYS[1], 'at', now, 'passed', passed, 'second', logged,
  'hour', starts[1], 'hour_used', used[1] + take,
  'day', starts[2], 'day_used', used[2] + take,
  'month', starts[3], 'month_used', used[3] + take,
  'hour_before', befores[1], 'hour_before_used', befores_used[1],
  'day_before', befores[2], 'day_before_used', befores_used[2],
  'month_before', befores[3], 'month_before_used', befores_used[3])
redis.call('PEXPIRE', KEYS[1], 32 * DAY)

return { now, starts[1], used[1], starts[2], used[2], starts[3], used[3], second, reset, wait }
`

/** Runs the check on a connection. */
export const createLimitScript = (redis: RedisConnection): LimitScript => ({
  ready: redis.ready,
  run: redis.script(LIMIT_SCRIPT, 2),
})
