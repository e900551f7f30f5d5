import { isUnsent, type TransportFailure, type TransportOutcome } from '../transport/transport.ts'
import { isSurelyUnknownMethod, isUnexplained, meaningOf } from './node-error.ts'
import { keepUseless, type PoolCall } from './pool-call.ts'
import type { PoolRequest, RpcReply } from './pool-types.ts'
import type { Upstream } from './upstream.ts'

// A node said to lack a method is asked for it last, until then.
const lackingMs = 600_000
const maxLacking = 256

const limited: TransportFailure = { failed: 'rate_limited', detail: 'refused by its rate limit' }

/** What follows from an attempt: its reply is the outcome, another node is asked, or the call has failed. */
export type Verdict = 'final' | 'repeat' | 'failed'

/** Judges the outcome of an attempt, and notes in the call and the node what it says about them. */
export function judge(
  call: PoolCall,
  upstream: Upstream,
  outcome: TransportOutcome,
  now: () => number,
): Verdict {
  if ('failed' in outcome) return judgeFailure(call, outcome)
  const { request } = call
  const meaning = outcome.ok ? 'answer' : meaningOf(outcome.error, request.params)
  if (meaning === 'rate_limited') return judgeFailure(call, limited)
  // Not where the parameters may be the reason: they are one caller's, the mark is for all.
  if (
    meaning === 'lacks_method' &&
    !outcome.ok &&
    upstream.lacking.size < maxLacking &&
    isSurelyUnknownMethod(outcome.error)
  )
    upstream.lacking.set(request.method, now() + lackingMs)
  const { isUseless } = request
  const isAnswer =
    isFinal(request, outcome) &&
    !(isUseless && guard(() => isUseless(outcome, upstream.name)) === true)
  const mayRepeat = request.idempotent || meaning === 'lacks_method'
  if (isAnswer || !mayRepeat) return 'final'
  keepUseless(call, outcome, meaning)
  return 'repeat'
}

/**
 * Methods that read what a node has stored. Their parameters are hashes, numbers and addresses, and no contract runs: an
 * error that nothing explains is the node's own (a damaged database, a proxy in front of it), and another node may have
 * the answer. Not calls, estimates and traces: their errors repeat words of contracts and of callers.
 */
const readsStored =
  /^net_version$|_(?:blockNumber|chainId|gasPrice|get(?:Block|Header|Uncle|Transaction|RawTransaction)[A-Za-z]*|getLogs|getBalance|getCode|getStorageAt|getProof)$/

/** Whether a reply is the answer to a request, as any other node would give it. */
export const isFinal = (
  { method, params }: Pick<PoolRequest, 'method' | 'params'>,
  reply: RpcReply,
): boolean =>
  reply.ok ||
  (meaningOf(reply.error, params) === 'answer' &&
    !(readsStored.test(method) && isUnexplained(reply.error, params)))

function judgeFailure(call: PoolCall, failure: TransportFailure): Verdict {
  call.isDisputed = true
  if (failure.failed === 'too_large') {
    call.failure = 'REPLY_TOO_LARGE'
    call.large++
  } else if (failure.failed === 'timeout' && call.failure === 'NO_UPSTREAM')
    call.failure = 'TIMEOUT'
  return call.request.idempotent || isUnsent(failure) ? 'repeat' : 'failed'
}

/** Isolates exceptions thrown by callbacks, so that they do not break the transports. */
export const guard = <value>(act: () => value): value | undefined => {
  try {
    return act()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
    return undefined
  }
}
