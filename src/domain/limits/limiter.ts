// Rate limits in four windows: second, hour, day and month. It uses `storage/redis` and the stored use of
// `storage/access`. `take` is synchronous and never waits for the network. With Redis several processes never
// admit more than the limit together; without it they converge within a second.

import type { Clock } from '../../lib/clock.ts'
import { type Ids, systemIds } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Decision, RateLimits } from './decision.ts'
import { type Counter, createEntries, type Entry, rollEntry } from './entries.ts'
import { createLocalWindows } from './local-windows.ts'
import { createSharedWindows, type LimitScript } from './shared-windows.ts'
import { adoptTotal, createWriteBehind, type UsageStore, type WriteBehind } from './stored-usage.ts'
import { createCalendar } from './windows.ts'

/** What to check and count. */
type TakeRequest = {
  organization_id: string
  chain: string
  limits: RateLimits
  /** Calls in a batch; 1 by default; 0 only reads. */
  cost?: number
}

/** The one check in front of operations and gateway calls. */
export type Limiter = {
  /**
   * Checks four windows, then counts in all four, or in none. Answers at once in memory; a
   * promise only for the first call of an organization and chain, and with Redis.
   */
  take(request: TakeRequest): Decision | Promise<Decision>
  /** Stores the counts now instead of within the next interval. */
  flush(): Promise<void>
  /** For probes and metrics. */
  status(): LimiterStatus
  /** Stores the counts and stops. */
  stop(): Promise<void>
}

/** What a limiter says about itself. */
export type LimiterStatus = {
  entries: number
  mode: 'memory' | 'redis' | 'redis_away'
  /** Whether the last attempt to store counts succeeded. */
  stored: boolean
  kept_counts: number
  lost_counts: number
}

/** How to build a limiter. */
export type LimiterOptions = {
  clock: Clock
  log: Log
  ids?: Ids
  /** Without one, counts end with the process. */
  store?: UsageStore
  /** Shares the windows among processes. */
  redis?: LimitScript
  /** How many processes divide the limits among them when Redis is unreachable or not configured. */
  replicas?: number
  /**
   * While Redis is unreachable, calls that any limit applies to are refused instead of admitted by shares, and for a
   * second after Redis has lost its data. Then the processes never admit more than a limit together, whichever of them
   * has lost Redis.
   */
  isStrict?: boolean
  max_entries?: number
  /** Bound on counts that wait for a store that is unreachable. */
  max_kept?: number
  flush_interval_ms?: number
  /** A store that takes longer is not waited for: the count begins at zero and catches up. */
  load_timeout_ms?: number
  stop_timeout_ms?: number
}

// Redis is tried once a second.
const lostMs = 1_000

/** Makes the limiter and starts its write-behind. */
export const createLimiter = ({
  clock,
  log,
  ids = systemIds,
  store,
  redis,
  replicas = 1,
  isStrict = false,
  max_entries = 10_000,
  max_kept = 100_000,
  flush_interval_ms = 1_000,
  load_timeout_ms = 1_000,
  stop_timeout_ms = 5_000,
}: LimiterOptions): Limiter => {
  const stopping = new AbortController()
  const calendar = createCalendar()
  const takeLocal = createLocalWindows()
  let stored = true
  let last = clock.now()
  // Time that passed, by the differences of the clock that are positive.
  let elapsed = 0

  // The sliding window is measured in time that passed, so setting the clock cannot empty it.
  const tick = (): number => {
    const now = clock.now()
    if (now > last) elapsed += now - last
    last = now
    return now
  }

  const writer: WriteBehind | undefined =
    store &&
    createWriteBehind({
      store,
      ids,
      log,
      max_kept,
      // Late binding: the writer and the entries need each other.
      find: (organization_id, chain) => find(organization_id, chain),
    })
  const forget = (_: Entry, counter: Counter): void => {
    counter.delta = 0
  }
  const keep = writer?.keep ?? forget

  const load = async (from: UsageStore, entry: Entry): Promise<void> => {
    const expiry = new AbortController()
    const reading = (async () => {
      const totals = await from.load(entry.organization_id, entry.chain, clock.now())
      for (const total of totals) adoptTotal(entry, total, keep)
    })()
    // Bounds the wait of the first call of an organization.
    const late = clock.sleep(load_timeout_ms, expiry.signal).then(() => {
      throw new Error(`no answer within ${load_timeout_ms} ms`)
    })
    try {
      await Promise.race([reading, late])
    } catch (error) {
      log.warn({ err: error }, 'reading stored usage failed, counting from zero')
    } finally {
      reading.catch(() => {})
      late.catch(() => {})
      expiry.abort()
      // Also after a failure: the limiter must answer without the database.
      entry.loading = undefined
    }
  }

  const { open, find, size } = createEntries({
    max_entries,
    opened: (entry) => {
      if (store !== undefined) entry.loading = load(store, entry)
    },
    spill: (entry) => writer?.spill(entry),
  })

  const decideLocally = (entry: Entry, limits: RateLimits, cost: number): Decision => {
    const now = tick()
    rollEntry(entry, calendar(now), now, keep)
    const decision = takeLocal(entry, limits, cost, now, elapsed, replicas)
    if (decision.allowed && cost > 0 && !entry.dirty) writer?.mark(entry)
    return decision
  }

  /** The limits are not known here: other processes may be using all of them. */
  const refuse = (entry: Entry, limits: RateLimits, cost: number): Decision => {
    const decision = decideLocally(entry, limits, 0)
    const window = decision.windows[0]
    if (!window || cost === 0) return decideLocally(entry, limits, cost)
    const { window: name, limit } = window
    return {
      ...{ allowed: false, window: name, limit, remaining: 0, retry_after_ms: lostMs },
      windows: decision.windows.map((one) => ({ ...one, remaining: 0 })),
    }
  }

  const shared =
    redis &&
    createSharedWindows({
      redis,
      log,
      elapsed: () => {
        tick()
        return elapsed
      },
      keep,
      counted: (entry) => writer?.mark(entry),
      fallback: isStrict ? refuse : decideLocally,
      isStrict,
    })

  // With Redis one script decides for all processes; without it each process decides for itself.
  const decide = (entry: Entry, limits: RateLimits, cost: number): Decision | Promise<Decision> =>
    shared === undefined ? decideLocally(entry, limits, cost) : shared.take(entry, limits, cost)

  const flush = async (): Promise<void> => {
    if (writer === undefined) return
    try {
      await writer.flush()
      if (!stored) log.info({}, 'usage counts are stored again')
      stored = true
    } catch (error) {
      if (stored) log.warn({ err: error }, 'storing usage counts failed, will retry')
      stored = false
      throw error
    }
  }

  const flushRegularly = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const slept = await clock.sleep(flush_interval_ms, stopping.signal).then(
        () => true,
        () => false,
      )
      // A failure is logged by `flush` and retried with the next interval.
      if (slept) await flush().catch(() => {})
    }
  }
  const flushing = writer === undefined ? Promise.resolve() : flushRegularly()

  return {
    take: ({ organization_id, chain, limits, cost = 1 }) => {
      // A cost that is not a whole number would corrupt the counters for the rest of their windows.
      if (!Number.isSafeInteger(cost) || cost < 0) throw new RangeError(`cost ${cost}`)
      const entry = open(organization_id, chain)
      if (entry.loading === undefined) return decide(entry, limits, cost)
      return entry.loading.then(() => decide(entry, limits, cost))
    },
    flush,
    status: () => {
      const { kept, lost } = writer?.status() ?? { kept: 0, lost: 0 }
      return {
        entries: size(),
        mode: shared === undefined ? 'memory' : shared.healthy() ? 'redis' : 'redis_away',
        stored,
        kept_counts: kept,
        lost_counts: lost,
      }
    },
    stop: async () => {
      stopping.abort()
      // Bounds the stop, so that a database that is gone does not keep the process.
      const late = new AbortController()
      const finish = flushing.then(flush)
      const expired = clock.sleep(stop_timeout_ms, late.signal).then(() => {
        throw new Error(`not stored within ${stop_timeout_ms} ms`)
      })
      try {
        await Promise.race([finish, expired])
      } catch (error) {
        log.error({ err: error }, 'the last usage counts were not stored')
      } finally {
        finish.catch(() => {})
        expired.catch(() => {})
        late.abort()
      }
    },
  }
}
