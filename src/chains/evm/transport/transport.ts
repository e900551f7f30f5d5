// HTTP and WebSocket connections to one node. They know JSON-RPC envelopes but no methods. They
// guarantee bounded memory, a time limit per call and exactly one answer per call.

import type { RawJson, RpcReply } from '../pool/pool-types.ts'

/** Why a node gave no answer to a call. */
export type FailureKind =
  /** No connection came about. */
  | 'connect'
  /** The connection ended before the answer. */
  | 'closed'
  | 'timeout'
  /** Its time was over before it was its turn to be sent. */
  | 'queued'
  /** Given up because the node has stopped answering anything. */
  | 'stalled'
  | 'too_large'
  /** The connection ended because the reply to another call was far too large to be dropped. */
  | 'interrupted'
  /** What came is not an answer to what was asked. */
  | 'bad_reply'
  | 'http_status'
  | 'rate_limited'

/** A call that a node did not answer. */
export type TransportFailure = { failed: FailureKind; detail: string; retryAfterMs?: number }

/** How a call to one node ended. */
export type TransportOutcome = RpcReply | TransportFailure

/** One call to one node. */
export type TransportCall = {
  method: string
  params: RawJson
  timeoutMs: number
  /** Whether it may be given up when the node stalls, to be made elsewhere. */
  idempotent: boolean
  /** Does not wait for its turn: a probe must find out about the node, not about our queue. */
  isUrgent?: boolean
  /** Longer strings of the answer are left out, as far as the transport can. */
  longestString?: number | undefined
  /** Whether a text is one JSON value, for a caller that parses its result anyway: then it is not scanned as well. */
  isWhole?: ((result: RawJson) => boolean) | undefined
  /** Called exactly once, never synchronously. */
  done(outcome: TransportOutcome): void
}

/** The way to one node. */
export type Transport = {
  kind: 'http' | 'ws'
  send(call: TransportCall): void
  /** Gives up the idempotent calls that wait for an answer. */
  abandon(detail: string): void
  isOpen(): boolean
  /** How many calls it is worth to give it at once; the others better wait for any node. */
  capacity(): number
  stop(): Promise<void>
}

/** What every transport is made of. */
export type TransportOptions = {
  url: URL
  headers: Record<string, string>
  maxReplyBytes: number
  connectTimeoutMs: number
  /** The last connection has ended; the next may lead to another node. */
  onClose(reason: string): void
}

/** Failures after which the node has certainly not acted on the call. */
export const isUnsent = ({ failed }: TransportFailure): boolean =>
  failed === 'connect' || failed === 'rate_limited' || failed === 'queued'

/** The text of one call as the node gets it. */
export const toRequestText = (
  id: number,
  { method, params }: Pick<TransportCall, 'method' | 'params'>,
): string => `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`

/** An answer that cannot be used. */
export const badReply = (detail: string): TransportFailure => ({ failed: 'bad_reply', detail })

/** An answer that has not come in time. */
export const lateAfter = (ms: number): TransportFailure => ({
  failed: 'timeout',
  detail: `no answer in ${Math.round(ms)} ms`,
})
