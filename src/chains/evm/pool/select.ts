import type { PoolRequest } from './pool-types.ts'
import { isPresent, isUsable, type Upstream } from './upstream.ts'

/** What a call demands of a node. */
export type Demand = Pick<PoolRequest, 'method' | 'minBlock' | 'needs' | 'avoid'>

/** The choice among nodes. */
export type Selection = {
  /** The node to ask, if one can be asked now. */
  chosen: Upstream | undefined
  /** Whether another one could be asked as well. */
  hasOthers: boolean
  /** Milliseconds until a rate limit lets one in; Infinity when none waits for that. */
  waitMs: number
  /** Whether one that could be asked has its hands full. */
  isBusy: boolean
}

/** Whether it can serve the call at all, leaving out its health. */
export const canServe = (upstream: Upstream, { minBlock, needs, avoid }: Demand): boolean =>
  (needs === undefined || upstream.capabilities.has(needs)) &&
  (minBlock === undefined || (upstream.head?.number ?? -1) >= minBlock) &&
  !avoid?.includes(upstream.name)

/** What the choice depends on beside the nodes and the call. */
export type SelectionContext = { now: number; bestHead: number; maxLag: number; random(): number }

/**
 * Healthy nodes of the lowest priority number first; of equals, the better of two taken at random:
 * so each one is used a little, and the slow and the busy ones less. A node whose circuit is open is
 * still better than none.
 */
export function select(
  upstreams: readonly Upstream[],
  demand: Demand,
  tried: readonly Upstream[],
  context: SelectionContext,
): Selection {
  const selection = selectAmong(upstreams, demand, tried, context, isUsable)
  const isNone =
    !selection.chosen && !selection.isBusy && selection.waitMs === Number.POSITIVE_INFINITY
  // A second request in a row would fail in the same way.
  return isNone && tried.length === 0
    ? selectAmong(upstreams, demand, tried, context, isPresent)
    : selection
}

function selectAmong(
  upstreams: readonly Upstream[],
  demand: Demand,
  tried: readonly Upstream[],
  context: SelectionContext,
  isEligible: (upstream: Upstream) => boolean,
): Selection {
  const { now } = context
  let waitMs = Number.POSITIVE_INFINITY
  let bestRank = Number.POSITIVE_INFINITY
  let isBusy = false
  let isFirstChoiceBusy = false
  let equals = 0
  let total = 0
  let chosen: Upstream | undefined
  let second: Upstream | undefined
  for (const upstream of upstreams) {
    if (!isEligible(upstream) || !canServe(upstream, demand) || tried.includes(upstream)) continue
    const wait = upstream.gate.waitMs(now)
    if (wait > 0) {
      waitMs = Math.min(waitMs, wait)
      continue
    }
    const rank = rankOf(upstream, demand.method, context)
    if (upstream.inFlight >= upstream.transport.capacity()) {
      isBusy = true
      if (rank < lastPriority) isFirstChoiceBusy = true
      continue
    }
    total++
    if (rank > bestRank) continue
    equals = rank < bestRank ? 1 : equals + 1
    if (equals === 1) second = undefined
    bestRank = rank
    // Two places for a sample of any number of equals.
    const place = equals <= 2 ? equals - 1 : Math.floor(context.random() * equals)
    if (place === 0) chosen = upstream
    else if (place === 1) second = upstream
  }
  // A node that lags is for when there is no other, not for when the others are busy.
  if (isFirstChoiceBusy && bestRank >= lastPriority) chosen = undefined
  if (chosen && second && costOf(second) * (0.9 + context.random() * 0.2) < costOf(chosen))
    chosen = second
  return { chosen, hasOthers: total > 1, waitMs, isBusy }
}

const lastPriority = 10_000

function rankOf(
  upstream: Upstream,
  method: string,
  { now, bestHead, maxLag }: { now: number; bestHead: number; maxLag: number },
): number {
  const lag = bestHead - (upstream.head?.number ?? 0)
  const isSecondChoice =
    upstream.isSyncing || lag > maxLag || (upstream.lacking.get(method) ?? 0) > now
  return upstream.priority + (isSecondChoice ? lastPriority : 0)
}

/** Lower is better. */
export const costOf = ({ latency, breaker, inFlight }: Upstream): number =>
  (latency.mean() + 1) * (1 + 20 * breaker.errorRate()) * (1 + inFlight / 32)
