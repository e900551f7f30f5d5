import type { PoolFailure, RawJson } from '../../chains/evm/pool/pool-types.ts'
import type { Session } from '../streams/session.ts'
import type { RpcCall } from './envelope.ts'
import type { Method } from './methods.ts'
import { type Refusal, refuse } from './rpc-error.ts'

/** Answers one call of a method whose parameters are checked. */
export type Dispatch = (
  method: Method,
  call: RpcCall,
  session: Session,
  done: OnAnswer,
  /** Answers what only a connection can ask for. */
  connection?: Dispatch,
) => void

/** How a call was answered. */
export type Answer = {
  ok: boolean
  /** The text of the result, or of the error. */
  text: RawJson
  /** Set when the error is the gateway's own. */
  refusal: Refusal | undefined
  /** Whether the cache had it; undefined where the cache has no part in it. */
  hit: boolean | undefined
  /** The block that the answer is pinned to; -1 and empty where it is to none. */
  number: number
  hash: string
}

/** Called with the answer to a call, exactly once. */
export type OnAnswer = (answer: Answer) => void

/** An answer of the gateway itself: this call is refused. */
export const refused = (refusal: Refusal): Answer => ({
  ok: false,
  text: refusal.error,
  refusal,
  hit: undefined,
  number: -1,
  hash: '',
})

/** An answer of the gateway itself. */
export const answered = (result: RawJson): Answer => ({
  ok: true,
  text: result,
  refusal: undefined,
  hit: undefined,
  number: -1,
  hash: '',
})

const unavailable: Refusal = { ...refuse('UPSTREAM_UNAVAILABLE'), retryAfter: 1 }
const failures: Readonly<Record<PoolFailure, Refusal>> = {
  NO_UPSTREAM: unavailable,
  ABORTED: unavailable,
  TIMEOUT: refuse('UPSTREAM_TIMEOUT'),
  REPLY_TOO_LARGE: refuse('RESPONSE_TOO_LARGE'),
}

/** The answer when no node gave one. */
export const failed = (failure: PoolFailure): Answer => refused(failures[failure])
