import type { Clock } from '../../../lib/clock.ts'
import { badReply, type FailureKind, type TransportOutcome } from '../transport/transport.ts'
import { meaningOf } from './node-error.ts'
import type { RawJson, RpcReply } from './pool-types.ts'
import type { Upstream } from './upstream.ts'

/** How a call to one node ended, for metrics. */
export type CallOutcome = 'ok' | 'error' | FailureKind

/** Called for every call to a node. */
export type Observe = (upstream: string, method: string, outcome: CallOutcome, ms: number) => void

/** One call to one node. */
export type AskCall = {
  method: string
  params: RawJson
  timeoutMs: number
  idempotent: boolean
  isUrgent?: boolean
  longestString?: number | undefined
  isWhole?: ((result: RawJson) => boolean) | undefined
  isWrong?: ((reply: RpcReply) => boolean) | undefined
}

/** Makes calls to single nodes and keeps the books on how they do. */
export type Asker = (
  upstream: Upstream,
  call: AskCall,
  done: (outcome: TransportOutcome, ms: number) => void,
  /** The time, where the caller has just read the clock. */
  now?: number,
) => void

/** The books: latency, errors, breaker, rate limit. */
export function createAsker({
  clock,
  observe,
  changed,
}: {
  clock: Clock
  observe: Observe
  /** A node that was tried carefully may take more calls, or none. */
  changed(): void
}): Asker {
  const settle = (
    upstream: Upstream,
    call: AskCall,
    outcome: TransportOutcome,
    ms: number,
    now: number,
  ): CallOutcome => {
    if (!('failed' in outcome)) {
      upstream.latency.add(ms)
      upstream.answeredAt = now
      if (!outcome.ok && meaningOf(outcome.error, call.params) === 'rate_limited') {
        upstream.gate.coolDown(now)
        return 'rate_limited'
      }
      upstream.breaker.succeed()
      upstream.gate.relax()
      return outcome.ok ? 'ok' : 'error'
    }
    // Our own queue was too long; that is not a fault of the node.
    if (outcome.failed === 'queued') return outcome.failed
    upstream.errors++
    upstream.problem = outcome.detail
    if (outcome.failed === 'rate_limited') upstream.gate.coolDown(now, outcome.retryAfterMs)
    else if (isFaultOfNode(call, outcome.failed)) {
      upstream.breaker.fail(now)
      // The next connection may lead to another node, or to the same on another chain.
      if (outcome.failed === 'connect') upstream.isVerified = false
    }
    return outcome.failed
  }

  return (upstream, call, done, startedAt = clock.now()) => {
    upstream.gate.take(startedAt)
    upstream.inFlight++
    upstream.requests++
    upstream.transport.send({
      ...call,
      done: (received) => {
        const isWrong = !('failed' in received) && call.isWrong?.(received)
        const outcome = isWrong ? badReply('an answer that cannot be right') : received
        upstream.inFlight--
        const now = clock.now()
        const ms = now - startedAt
        const isTrial = upstream.breaker.state() !== 'closed'
        observe(upstream.name, call.method, settle(upstream, call, outcome, ms, now), ms)
        if (isTrial) changed()
        done(outcome, ms)
      },
    })
  }
}

// Transactions decide the time and size of a trace, and anyone can send transactions.
const costsAnything = /^(?:debug|trace)_/

/** Whether a failure says something about the node, not only about this one call. */
const isFaultOfNode = ({ method }: AskCall, failed: FailureKind): boolean =>
  failed !== 'too_large' &&
  failed !== 'interrupted' &&
  !(failed === 'timeout' && costsAnything.test(method))
