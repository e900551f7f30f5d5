import type { Timer } from '../transport/timers.ts'
import type { ErrorMeaning } from './node-error.ts'
import type { PoolFailure, PoolOutcome, PoolRequest, RpcReply } from './pool-types.ts'
import type { Upstream } from './upstream.ts'

/** A call that the pool carries, from its request to its outcome. */
export type PoolCall = {
  request: PoolRequest
  done: (outcome: PoolOutcome) => void
  deadline: number
  /** Nodes that were asked in this round. */
  tried: Upstream[]
  round: number
  inFlight: number
  /** `call` has not returned yet, so that the outcome must wait for another turn. */
  isNew: boolean
  isOver: boolean
  /** What is given when no node has an answer: the first reply of a node that could not serve it. */
  useless: RpcReply | undefined
  uselessWorth: number
  /** How many of the nodes of this round had an answer that is too large. */
  large: number
  failure: PoolFailure
  hedge: Timer | undefined
  wait: Timer | undefined
  /** Since when there has been no node for it. */
  strandedAt: number | undefined
  onAbort: (() => void) | undefined
}

/** A call at its beginning. */
export const createPoolCall = (
  request: PoolRequest,
  done: (outcome: PoolOutcome) => void,
  deadline: number,
): PoolCall => ({
  request,
  done,
  deadline,
  tried: [],
  round: 0,
  inFlight: 0,
  isNew: true,
  isOver: false,
  useless: undefined,
  uselessWorth: -1,
  large: 0,
  failure: 'NO_UPSTREAM',
  hedge: undefined,
  wait: undefined,
  strandedAt: undefined,
  onAbort: undefined,
})

/** Keeps a reply that does not serve the request, unless a more informative one is kept already. */
export function keepUseless(call: PoolCall, reply: RpcReply, meaning: ErrorMeaning): void {
  const worth = worthOf(reply, meaning)
  if (worth <= call.uselessWorth) return
  call.useless = reply
  call.uselessWorth = worth
}

// An error says more than a null; that a node does not offer the method says least.
const worthOf = ({ ok }: RpcReply, meaning: ErrorMeaning): number => {
  if (meaning === 'lacks_method') return 0
  return ok ? 1 : 2
}
