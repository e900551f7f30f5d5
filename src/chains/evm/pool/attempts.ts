import type { Clock } from '../../../lib/clock.ts'
import { createLatency, type Latency } from '../../nodes/latency.ts'
import type { Timers } from '../transport/timers.ts'
import type { TransportOutcome } from '../transport/transport.ts'
import type { Asker } from './ask.ts'
import type { PoolCall } from './pool-call.ts'
import type { Selection } from './select.ts'
import type { Upstream } from './upstream.ts'

const largestShare = 0.1
// Saved up in quiet times, spent when a node begins to hang.
const largestBurst = 20
const maxMethods = 256
const shortestMs = 10

/** Sends a call to a node. If the node takes unusually long, a second one is asked as well. */
export type Attempt = (call: PoolCall, upstream: Upstream, hasOthers: boolean, now: number) => void

/** Makes attempts; `settled` is called once for each. */
export function createAttempts(options: {
  ask: Asker
  clock: Clock
  timers: Timers
  slowCallMs(): number
  choose(call: PoolCall, now: number): Selection
  settled(call: PoolCall, upstream: Upstream, outcome: TransportOutcome): void
}): Attempt {
  const { ask, clock, timers, choose, settled } = options
  const hedging = createHedging(options.slowCallMs)

  const attempt: Attempt = (call, upstream, hasOthers, now) => {
    const { request } = call
    call.tried.push(upstream)
    const left = call.deadline - now
    ask(
      upstream,
      {
        method: request.method,
        params: request.params,
        // Half of what is left, so that a node that hangs leaves time for another. A transaction has all of it: it is never
        // sent to a second node while the first may have accepted it.
        timeoutMs: hasOthers && request.idempotent ? left / 2 : left,
        idempotent: request.idempotent,
        isWhole: request.isWhole,
        isWrong: request.isWrong,
        longestString: request.longestString,
      },
      (outcome, ms) => settle(call, upstream, outcome, ms),
      now,
    )
    call.inFlight++
    // The patience of a call counts from the last moment at which it had a node.
    call.strandedAt = undefined
    // One hedge per call: two slow nodes are a slow chain, and a third request would only add to its load.
    if (call.hedge || !hasOthers || !request.idempotent) return
    const afterMs = hedging.begin(request.method)
    if (afterMs < left) call.hedge = timers.after(afterMs, () => hedge(call))
  }

  const hedge = (call: PoolCall): void => {
    if (call.isOver || call.inFlight !== 1) return
    const now = clock.now()
    const { chosen, hasOthers } = choose(call, now)
    if (chosen && hedging.take()) attempt(call, chosen, hasOthers, now)
  }

  const settle = (
    call: PoolCall,
    upstream: Upstream,
    outcome: TransportOutcome,
    ms: number,
  ): void => {
    call.inFlight--
    // Failures are often fast, and would make ordinary answers look slow.
    if (!('failed' in outcome)) hedging.add(call.request.method, ms)
    settled(call, upstream, outcome)
  }

  return attempt
}

/** When a second node is asked because the first one takes unusually long. */
export type Hedging = {
  /** Counts a call; answers after how many milliseconds it should be hedged, Infinity for never. */
  begin(method: string): number
  /** Whether the bounded share of extra calls has room for one more. */
  take(): boolean
  add(method: string, ms: number): void
}

/**
 * Learns the p95 of each method, and allows one extra call per ten. A call that takes as long as a block is hedged
 * before its p95, because its answer would be of an old block. Methods that usually take as long keep to their p95:
 * otherwise they would spend the extra calls of all others.
 */
export function createHedging(slowCallMs: () => number): Hedging {
  const methods = new Map<string, Latency>()
  let credit = 0
  return {
    begin: (method) => {
      credit = Math.min(largestBurst, credit + largestShare)
      const latency = methods.get(method)
      const p95 = latency?.quantile(0.95)
      if (latency === undefined || p95 === undefined) return slowCallMs()
      const median = latency.quantile(0.5) ?? p95
      return Math.max(Math.min(p95, Math.max(slowCallMs(), 2 * median)), shortestMs)
    },
    take: () => {
      if (credit < 1) return false
      credit--
      return true
    },
    add: (method, ms) => {
      let latency = methods.get(method)
      if (!latency) {
        if (methods.size >= maxMethods) return
        latency = createLatency()
        methods.set(method, latency)
      }
      latency.add(ms)
    },
  }
}
