// The limiter of a worker process with `server.workers` above 1. The supervisor owns the windows (`slice-owner.ts`) and
// grants parts of them ahead. What is granted and not reported takes room in every window, so the workers together never
// exceed a limit. A part that one of them holds unused is missing to the others; ticks give it back.

import type { Decision, RateLimits } from './decision.ts'
import type { Limiter } from './limiter.ts'
import type { SliceAsk, SliceReply } from './slice-owner.ts'

type Waiting = { cost: number; resolve(decision: Decision): void; reject(error: unknown): void }

/** What this process may admit for one organization on one chain. */
type Entry = {
  organization_id: string
  chain: string
  limits: RateLimits
  /** Calls that were granted and not used. */
  held: number
  /** Admitted and not reported yet. */
  spent: number
  /** Admitted since the windows were last reported. */
  since: number
  /** Admitted since the last tick, and in the one before. */
  used: number
  rate: number
  windows: Decision['windows']
  /** Until then calls of this cost are refused without asking. */
  closed: { until: number; cost: number; decision: Decision } | undefined
  waiting: Waiting[]
  isAsking: boolean
  reportedAt: number
}

/** How the parts of a limit reach this process. */
export type SlicedOptions = {
  /** Reports and asks, several entries at once; the replies are in the same order. */
  ask(asks: readonly SliceAsk[]): Promise<readonly SliceReply[]>
  now?: () => number
  /** Calls tick after a while; returns how to cancel it. */
  later?: (tick: () => void, ms: number) => () => void
  tickMs?: number
}

// A grant is used or given back within two of these, so that others hardly miss it.
const usualTickMs = 8
// Where the windows have room for far more than is used, others do not miss it, and messages cost more than they bring.
const calmTicks = 5
const ampleTimes = 20
// Calls without any limit are only counted.
const reportMs = 1_000
// Filled by organizations and chains; beyond it idle entries go.
const maxEntries = 10_000
// Filled by callers while the supervisor does not answer; beyond it calls are refused for a second.
const maxWaiting = 10_000

/**
 * Makes a limiter that admits from what a slice owner in another process granted to it ahead. Under load `take` answers at
 * once; the first call after a pause waits for one message there and back.
 */
export function createSlicedLimiter(options: SlicedOptions): Limiter {
  const { ask, now = () => performance.now(), tickMs = usualTickMs } = options
  const later = options.later ?? afterTimeout
  const active = new Set<Entry>()
  const entries = createEntries({ now, isIdle: (entry) => !active.has(entry) && !entry.isAsking })
  let waiting = 0
  let asks: { entry: Entry; ask: SliceAsk }[] = []
  let cancel: (() => void) | undefined
  let isStopped = false
  let isTight = true
  const running = new Set<Promise<void>>()

  const admit = (entry: Entry, cost: number): Decision => {
    entry.held -= cost
    entry.spent += cost
    entry.since += cost
    entry.used += cost
    return describe(entry)
  }

  /** Reports what was spent and asks for more; all entries of one moment in one message. */
  const request = (
    entry: Entry,
    { min, want, returned }: Pick<SliceAsk, 'min' | 'want' | 'returned'>,
  ) => {
    const { organization_id, chain, limits, spent } = entry
    entry.isAsking = true
    entry.spent = 0
    entry.held -= returned
    entry.reportedAt = now()
    if (asks.length === 0) queueMicrotask(send)
    asks.push({ entry, ask: { organization_id, chain, limits, spent, returned, min, want } })
  }

  const send = () => {
    const sent = asks
    asks = []
    const work = ask(sent.map((one) => one.ask)).then(
      (replies) => {
        for (const [index, { entry, ask }] of sent.entries()) receive(entry, ask, replies[index]!)
      },
      (error: unknown) => {
        for (const { entry, ask } of sent) {
          // The report did not arrive: it goes with the next one.
          entry.spent += ask.spent
          entry.held += ask.returned
          entry.isAsking = false
          for (const one of leaveQueue(entry)) one.reject(error)
        }
      },
    )
    running.add(work)
    void work.finally(() => running.delete(work))
  }

  const leaveQueue = (entry: Entry): Waiting[] => {
    const all = entry.waiting
    entry.waiting = []
    waiting -= all.length
    return all
  }

  const receive = (entry: Entry, asked: SliceAsk, { granted, decision, closed_ms }: SliceReply) => {
    entry.isAsking = false
    entry.held += granted
    entry.windows = decision.windows
    entry.since = 0
    const first = entry.waiting[0]
    if (first && asked.min > 0 && granted === 0) {
      // The window has no room for this cost, whatever is held besides.
      const cost = Math.max(1, asked.min + entry.held)
      entry.closed = { until: now() + closed_ms, cost, decision }
    }
    const { closed } = entry
    const again: Waiting[] = []
    for (const one of leaveQueue(entry)) {
      if (one.cost === 0) one.resolve({ ...decision, allowed: true, retry_after_ms: 0 })
      else if (one.cost <= entry.held && again.length === 0) one.resolve(admit(entry, one.cost))
      else if (closed && closed.until > now() && one.cost >= closed.cost)
        one.resolve(closed.decision)
      else again.push(one)
    }
    entry.waiting = again
    waiting += again.length
    if (again.length > 0) askFor(entry)
    else if (isStopped && entry.held + entry.spent > 0)
      request(entry, { min: 0, want: 0, returned: entry.held })
  }

  /** Asks for those that wait. */
  const askFor = (entry: Entry) => {
    const first = entry.waiting[0]!
    const all = entry.waiting.reduce((sum, { cost }) => sum + cost, 0)
    // A grant of less would not let the first one pass, and those behind it wait for their turn.
    const min = Math.max(0, first.cost - entry.held)
    request(entry, { min, want: Math.max(min, all - entry.held + entry.rate), returned: 0 })
  }

  const tick = () => {
    cancel = undefined
    const time = now()
    isTight = false
    for (const entry of active) {
      const { spent, held, used } = entry
      isTight ||= !isUnlimited(entry.limits) && leftOf(entry) < used * ampleTimes
      entry.rate = used
      entry.used = 0
      // Its next turn comes soon.
      if (entry.isAsking) continue
      if (isUnlimited(entry.limits)) {
        if (spent === 0) active.delete(entry)
        else if (time - entry.reportedAt >= reportMs)
          request(entry, { min: 0, want: 0, returned: 0 })
      } else if (used > 0) {
        // As much as the last moment needed, and half of it more.
        const target = Math.ceil(used * 1.5)
        const returned = Math.max(0, held - target)
        request(entry, { min: 0, want: Math.max(0, target - held), returned })
      } else if (held + spent > 0) request(entry, { min: 0, want: 0, returned: held })
      else active.delete(entry)
    }
    schedule()
  }

  const schedule = () => {
    if (active.size > 0 && !isStopped) cancel ??= later(tick, isTight ? tickMs : tickMs * calmTicks)
  }

  const activate = (entry: Entry) => {
    if (active.has(entry)) return
    active.add(entry)
    schedule()
  }

  /** A reply may cause a request: this ends only when neither is left. */
  const settled = async () => {
    while (running.size > 0 || asks.length > 0) await Promise.all([...running, Promise.resolve()])
  }

  const report = async () => {
    await settled()
    for (const entry of active)
      if (!entry.isAsking && entry.spent > 0) request(entry, { min: 0, want: 0, returned: 0 })
    await settled()
  }

  return {
    take: ({ organization_id, chain, limits, cost = 1 }) => {
      if (!Number.isSafeInteger(cost) || cost < 0) throw new RangeError(`cost ${cost}`)
      const entry = entries.open(organization_id, chain, limits)
      // By identity: `limit-records.ts` gives the same object until it loads the records again, which a change causes. A
      // refusal by the old limits ends at once.
      if (entry.limits !== limits) {
        entry.limits = limits
        entry.closed = undefined
      }
      activate(entry)
      if (isUnlimited(limits)) {
        entry.spent += cost
        return free
      }
      if (cost > 0 && cost <= entry.held && entry.waiting.length === 0) return admit(entry, cost)
      const { closed } = entry
      if (closed && cost >= closed.cost) {
        if (closed.until > now()) return closed.decision
        entry.closed = undefined
      }
      if (waiting >= maxWaiting) return { ...busy }
      return new Promise((resolve, reject) => {
        entry.waiting.push({ cost, resolve, reject })
        waiting++
        if (!entry.isAsking) askFor(entry)
      })
    },
    flush: report,
    status: () => ({
      entries: entries.count(),
      mode: 'memory',
      stored: true,
      kept_counts: 0,
      lost_counts: 0,
    }),
    stop: async () => {
      isStopped = true
      cancel?.()
      await settled()
      for (const entry of active)
        if (!entry.isAsking && entry.spent + entry.held > 0)
          request(entry, { min: 0, want: 0, returned: entry.held })
      await settled()
    },
  }
}

/** The entries by organization and chain. */
function createEntries(options: { now(): number; isIdle(entry: Entry): boolean }) {
  const { now } = options
  const organizations = new Map<string, Map<string, Entry>>()
  let count = 0

  const open = (organization_id: string, chain: string, limits: RateLimits): Entry => {
    const chains = organizations.get(organization_id)
    const found = chains?.get(chain)
    if (found) return found
    if (count >= maxEntries) forgetIdle()
    const entry: Entry = {
      ...{ organization_id, chain, limits, held: 0, spent: 0, since: 0, used: 0, rate: 0 },
      windows: [],
      ...{ closed: undefined, waiting: [], isAsking: false, reportedAt: now() },
    }
    if (chains) chains.set(chain, entry)
    else organizations.set(organization_id, new Map([[chain, entry]]))
    count++
    return entry
  }

  // Nothing of an idle entry is lost: it has reported and returned everything.
  const forgetIdle = () => {
    for (const [organization_id, chains] of organizations) {
      for (const [chain, entry] of chains) {
        if (!options.isIdle(entry)) continue
        chains.delete(chain)
        count--
      }
      if (chains.size === 0) organizations.delete(organization_id)
    }
  }

  return { open, count: () => count }
}

const afterTimeout = (tick: () => void, ms: number) => {
  const timer = setTimeout(tick, ms)
  return () => clearTimeout(timer)
}

const isUnlimited = (limits: RateLimits): boolean =>
  limits.per_second_limit < 0 &&
  limits.per_hour_limit < 0 &&
  limits.per_day_limit < 0 &&
  limits.per_month_limit < 0

const free: Decision = {
  ...{ allowed: true, window: undefined, limit: -1, remaining: -1, retry_after_ms: 0, windows: [] },
}

// More calls wait for an answer than memory is meant for.
const busy: Decision = {
  ...{ allowed: false, window: 'second', limit: -1, remaining: 0, retry_after_ms: 1_000 },
  windows: [],
}

/** How many calls still fit into the smallest window, as far as is known. */
const leftOf = ({ windows, since }: Entry): number => {
  let left = Number.POSITIVE_INFINITY
  for (const { remaining } of windows) left = Math.min(left, remaining - since)
  return left
}

/** The windows as they were last reported, less what was admitted since. */
function describe({ windows, since }: Entry): Decision {
  const decision: Decision = {
    ...{ allowed: true, window: undefined, limit: -1, remaining: -1, retry_after_ms: 0 },
    windows: [],
  }
  for (const one of windows) {
    const remaining = Math.max(0, one.remaining - since)
    decision.windows.push({ ...one, remaining })
    // Of two windows equally full the longer one matters: it stays empty longer.
    if (decision.window !== undefined && remaining > decision.remaining) continue
    decision.window = one.window
    decision.limit = one.limit
    decision.remaining = remaining
  }
  return decision
}
