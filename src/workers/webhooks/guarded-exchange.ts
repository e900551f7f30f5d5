import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { ForbiddenAddressError } from './guarded-lookup.ts'

/** What a receiver answered. */
export type GuardedAnswer = {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
  /** The body went on, or did not end in time. */
  truncated: boolean
}

/** Why no answer came. */
export type FetchFailure =
  | 'forbidden'
  | 'timeout'
  | 'stopped'
  | 'name'
  | 'connect'
  | 'tls'
  | 'reset'
  | 'invalid'

/** No answer came; the message is fit for the owner of the endpoint. */
export class GuardedFetchError extends Error {
  override name = 'GuardedFetchError'
  readonly failure: FetchFailure
  constructor(failure: FetchFailure, message: string, cause?: unknown) {
    super(message, { cause })
    this.failure = failure
  }
}

type Limits = { timeoutMs: number; maxBytes: number; signal?: AbortSignal }

type Exchange = {
  handler: Dispatcher.DispatchHandler
  answer: Promise<GuardedAnswer>
  refuse(error: unknown): Promise<never>
}

// One listener for all requests of a signal: thousands of them on one would cost more than sending.
const waiting = new WeakMap<AbortSignal, Set<() => void>>()

const onAborted = (signal: AbortSignal, act: () => void): (() => void) => {
  const known = waiting.get(signal)
  const acts = known ?? new Set()
  acts.add(act)
  if (!known) {
    waiting.set(signal, acts)
    signal.addEventListener('abort', () => {
      for (const each of [...acts]) each()
    })
  }
  return () => acts.delete(act)
}

/** One request and its answer, bounded in time and size. */
export function createExchange({ timeoutMs, maxBytes, signal }: Limits): Exchange {
  const { promise: answer, resolve, reject } = Promise.withResolvers<GuardedAnswer>()
  // Set when the request gets a connection; before that there is nothing to abort.
  let controller: Dispatcher.DispatchController | undefined
  let head: Pick<GuardedAnswer, 'status' | 'headers'> | undefined
  const chunks: Buffer[] = []
  let size = 0
  let over = false

  const end = (outcome: { truncated: boolean } | { error: unknown }) => {
    if (over) return
    over = true
    // Timer and listener must not outlive the request: thousands are under way.
    clearTimeout(timer)
    forget?.()
    if ('error' in outcome) reject(outcome.error)
    else resolve({ ...head!, body: wholeOf(chunks), truncated: outcome.truncated })
  }
  const cut = (error: GuardedFetchError) => {
    // The receiver has said what it had to say: the rest of its body changes nothing.
    end(head ? { truncated: true } : { error })
    controller?.abort(error)
  }
  const onAbort = () => cut(new GuardedFetchError('stopped', 'The service stopped waiting.'))
  const timer = setTimeout(
    () => cut(new GuardedFetchError('timeout', `No answer within ${timeoutMs} ms.`)),
    timeoutMs,
  )
  const forget = signal && onAborted(signal, onAbort)
  if (signal?.aborted) onAbort()

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart: (started) => {
      controller = started
      // It waited for a connection for too long.
      if (over) started.abort(new Error('no longer wanted'))
    },
    onResponseStart: (_controller, status, headers) => {
      // 1xx responses announce the answer and are not it.
      if (status >= 200) head = { status, headers }
    },
    onResponseData: (_controller, chunk) => {
      if (over) return
      const left = maxBytes - size
      // A copy: the chunk is a view of what the socket read.
      if (left > 0) chunks.push(Buffer.from(chunk.subarray(0, left)))
      size += chunk.length
      // The status is known: the delivery counts by it, and the connection is closed.
      if (size > maxBytes) cut(new GuardedFetchError('invalid', 'The answer is too large.'))
    },
    onResponseEnd: () => end({ truncated: false }),
    onResponseError: (_controller, error) =>
      end(head ? { truncated: true } : { error: toFailure(error) }),
  }
  return {
    handler,
    answer,
    refuse: async (error) => {
      answer.catch(() => {})
      const failure = error instanceof GuardedFetchError ? error : toFailure(error)
      end({ error: failure })
      throw failure
    },
  }
}

// Shared: most receivers answer without a body.
const nothing = Buffer.alloc(0)
const wholeOf = (chunks: readonly Buffer[]): Buffer =>
  chunks.length === 0 ? nothing : Buffer.concat(chunks)

// Codes of c-ares and getaddrinfo, and those of sockets.
const nameCodes = new Set([
  'ENOTFOUND',
  'ENODATA',
  'ESERVFAIL',
  'EREFUSED',
  'ETIMEOUT',
  'EAI_AGAIN',
])
const connectCodes = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])

/** In words of ours: the error of a socket names addresses that the owner may not have known. */
function toFailure(error: unknown): GuardedFetchError {
  if (error instanceof ForbiddenAddressError)
    return new GuardedFetchError('forbidden', error.message, error)
  const { code = '' } = error as { code?: string }
  if (nameCodes.has(code)) return new GuardedFetchError('name', 'The name has no address.', error)
  if (code === 'UND_ERR_CONNECT_TIMEOUT')
    return new GuardedFetchError('timeout', 'No connection in time.', error)
  if (connectCodes.has(code) || error instanceof AggregateError)
    return new GuardedFetchError('connect', 'The connection was refused.', error)
  if (
    /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|EPROTO)/.test(code)
  )
    return new GuardedFetchError('tls', `The certificate or TLS failed (${code}).`, error)
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET')
    return new GuardedFetchError('reset', 'The connection was closed without an answer.', error)
  return new GuardedFetchError('invalid', 'The answer was not valid HTTP.', error)
}
