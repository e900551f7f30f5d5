// The state of one key on one network between its calls: what it has seen, so that its reads never go back, and what was
// counted for it since the counters were last stored.

import type { Principal } from '../../domain/access/principal.ts'
import { latencyBuckets } from '../usage/counters.ts'

/** What the gateway knows of one key on one network. */
export type Session = {
  principal: Principal
  /** The highest block that the key was shown: its reads never go back behind it. */
  highest: number
  /** Since when the network has been behind that; 0 when it is not. */
  aheadSince: number
  /** The state of the chain view when `highest` was noted. */
  generation: number
  /** The head when the key last sent a transaction, and until when that matters. */
  wroteAtBlock: number
  wroteUntil: number
  /** Calls and errors by method since they were last written down. */
  calls: Float64Array
  errors: Float64Array
  /** Those of the errors that a rate limit refused. */
  refused: Float64Array
  /** Answered calls by latency, of the methods that the key has called. */
  latency: (Float64Array | undefined)[]
  /** Whether anything was counted since. */
  counted: boolean
}

/** A session that has seen nothing yet. */
export const createSession = (principal: Principal, methods: number): Session => ({
  principal,
  highest: -1,
  aheadSince: 0,
  generation: 0,
  wroteAtBlock: -1,
  wroteUntil: 0,
  // The last place is for names that are no method of the gateway.
  calls: new Float64Array(methods + 1),
  errors: new Float64Array(methods + 1),
  refused: new Float64Array(methods + 1),
  latency: new Array(methods + 1).fill(undefined),
  counted: false,
})

/** The latencies of a method. They are made with its first call: most keys use few methods. */
export const latencyOf = (session: Session, method: number): Float64Array => {
  const known = session.latency[method]
  if (known) return known
  const made = new Float64Array(latencyBuckets)
  session.latency[method] = made
  return made
}
