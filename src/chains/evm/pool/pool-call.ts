import type { Timer } from '../transport/timers.ts'
import { type ErrorMeaning, readError } from './node-error.ts'
import { isPruned } from './nodes.ts'
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
  /** Whether a node that can serve such calls has failed, or said something other than that it has discarded this. */
  isDisputed: boolean
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
  isDisputed: false,
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
  if (worth !== prunedWorth && worth !== lackingWorth) call.isDisputed = true
  if (worth <= call.uselessWorth) return
  call.useless = reply
  call.uselessWorth = worth
}

/** What a call without an answer ends with: the most informative reply that it got. */
export function withoutAnswer(call: PoolCall): PoolOutcome | undefined {
  const { useless, uselessWorth, isDisputed, inFlight, failure } = call
  if (!useless || useless.ok || uselessWorth !== prunedWorth) return useless
  // The other node has it.
  if (failure === 'REPLY_TOO_LARGE') return { failure }
  return isDisputed || inFlight > 0 ? { ...useless, isDisputed: true } : useless
}

const lackingWorth = 0
const prunedWorth = 2

/**
 * An error says more than a null; that a node does not offer the method says least. That it has discarded something is known of
 * this node only, so any other error is preferred: it may be of a node that has it.
 */
export const worthOf = (reply: RpcReply, meaning: ErrorMeaning): number => {
  if (meaning === 'lacks_method') return lackingWorth
  if (reply.ok) return 1
  return isPruned(readError(reply.error)) ? prunedWorth : 3
}
