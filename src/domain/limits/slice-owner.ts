// The owner's side of limits that several worker processes share; `sliced-limiter.ts` is the other side.

import { type Decision, type RateLimits, unlimited } from './decision.ts'
import type { Limiter } from './limiter.ts'

/** What a process reports of an organization on a chain, and what it needs next. */
export type SliceAsk = {
  organization_id: string
  chain: string
  limits: RateLimits
  /** Calls that were admitted since the last report. */
  spent: number
  /** Granted calls that it does not need. */
  returned: number
  /** Nothing is granted unless so many fit. */
  min: number
  want: number
}

/** How many calls the process may admit, or why not. */
export type SliceReply = {
  granted: number
  decision: Decision
  /** After a refusal: how long no call of `min` can fit. */
  closed_ms: number
}

/** Grants parts of the limits to processes that admit calls themselves. */
export type SliceOwner = {
  ask(holder: string, ask: SliceAsk): Promise<SliceReply>
  /** For calls that the owner's own process admits, beside what it has granted to others. */
  take: Limiter['take']
  /** A process is gone: what it held counts as admitted. */
  leave(holder: string): Promise<void>
}

type Held = {
  organization_id: string
  chain: string
  total: number
  byHolder: Map<string, number>
}

// Counted in all windows and refused by none.
const counting: RateLimits = { ...unlimited, per_second_limit: Number.MAX_SAFE_INTEGER }
// What others hold comes back within milliseconds; a limit that is raised is noticed after the longer time.
const shortestMs = 2
const longestMs = 250

/**
 * Makes the owner. A granted call takes room in every window until it is reported, and is counted when it is reported:
 * in any order and with any delay of messages, no window ever holds more than its limit. What is lost is the time between
 * an admission and its report, some milliseconds of each second.
 */
export function createSliceOwner(options: {
  limiter: Pick<Limiter, 'take'>
  /** How many processes ask. */
  holders: number
  /** How many services divide the limits among them. */
  replicas?: number
}): SliceOwner {
  const { limiter, holders, replicas = 1 } = options
  const held = new Map<string, Held>()
  const keyOf = ({ organization_id, chain }: { organization_id: string; chain: string }) =>
    `${organization_id}\n${chain}`

  const change = (holder: string, at: Pick<SliceAsk, 'organization_id' | 'chain'>, by: number) => {
    if (by === 0) return
    const { organization_id, chain } = at
    const key = keyOf(at)
    const entry = held.get(key) ?? { organization_id, chain, total: 0, byHolder: new Map() }
    const now = Math.max(0, (entry.byHolder.get(holder) ?? 0) + by)
    entry.total += now - (entry.byHolder.get(holder) ?? 0)
    if (now > 0) entry.byHolder.set(holder, now)
    else entry.byHolder.delete(holder)
    if (entry.total > 0) held.set(key, entry)
    else held.delete(key)
  }

  const count = async (at: Pick<SliceAsk, 'organization_id' | 'chain'>, cost: number) => {
    if (cost === 0) return
    const counted = limiter.take({ ...at, limits: counting, cost })
    if (counted instanceof Promise) await counted
  }

  const left = (limits: RateLimits, total: number): RateLimits => {
    const reduce = (limit: number) => (limit < 0 ? limit : Math.max(0, limit - total * replicas))
    return {
      per_second_limit: reduce(limits.per_second_limit),
      per_hour_limit: reduce(limits.per_hour_limit),
      per_day_limit: reduce(limits.per_day_limit),
      per_month_limit: reduce(limits.per_month_limit),
    }
  }

  const ask = async (holder: string, given: SliceAsk): Promise<SliceReply> => {
    const { organization_id, chain, limits, spent, returned, min, want } = given
    const at = { organization_id, chain }
    // Counted before it is released: in between it takes room twice, never not at all.
    await count(at, spent)
    change(holder, given, -(spent + returned))
    // The first look at an organization reads its stored use. After that nothing below waits.
    const loaded = limiter.take({ ...at, limits, cost: 0 })
    if (loaded instanceof Promise) await loaded
    const total = held.get(keyOf(given))?.total ?? 0
    const reduced = left(limits, total)
    const looked = limiter.take({ ...at, limits: reduced, cost: 0 })
    const seen = looked instanceof Promise ? await looked : looked
    const decision = named(seen, limits)
    const room = Math.min(Number.POSITIVE_INFINITY, ...seen.windows.map((one) => one.remaining))
    if (room < min || (min > 0 && isClosed(limits))) {
      const refusal = limiter.take({ ...at, limits: reduced, cost: min })
      const refused = refusal instanceof Promise ? await refusal : refusal
      const waitMs = total > 0 ? shortestMs : refused.retry_after_ms
      const closed_ms = Math.min(longestMs, Math.max(shortestMs, waitMs))
      return { granted: 0, decision: named(refused, limits), closed_ms }
    }
    // Half of the room is divided among the holders, so that the others find something when they ask.
    const share = Math.floor(room / (2 * holders))
    const granted = Math.min(Math.max(min, want), Math.max(min, share))
    // A limiter that had to read again may have let others in meanwhile.
    if (looked instanceof Promise && (held.get(keyOf(given))?.total ?? 0) !== total)
      return await ask(holder, { ...given, spent: 0, returned: 0 })
    change(holder, given, granted)
    return { granted, decision, closed_ms: 0 }
  }

  return {
    ask,
    take: (given) => {
      const total = held.size === 0 ? 0 : (held.get(keyOf(given))?.total ?? 0)
      if (total === 0) return limiter.take(given)
      const decision = limiter.take({ ...given, limits: left(given.limits, total) })
      return decision instanceof Promise
        ? decision.then((one) => named(one, given.limits))
        : named(decision, given.limits)
    },
    leave: async (holder) => {
      for (const entry of [...held.values()]) {
        const own = entry.byHolder.get(holder) ?? 0
        await count(entry, own)
        change(holder, entry, -own)
      }
    },
  }
}

const isClosed = (limits: RateLimits): boolean => Object.values(limits).some((limit) => limit === 0)

/** The decision with the limits as they are, without what is held. */
const named = (decision: Decision, limits: RateLimits): Decision => {
  const limitOf = (window: string | undefined, given: number) =>
    window === undefined ? given : limits[`per_${window as 'second'}_limit`]
  return {
    ...decision,
    limit: limitOf(decision.window, decision.limit),
    windows: decision.windows.map((one) => ({ ...one, limit: limitOf(one.window, one.limit) })),
  }
}
