// One POST by undici's dispatcher, with callbacks instead of streams and promises: a call of the gateway passes here,
// and each object that it does not make is saved for every call.

import { isUtf8 } from 'node:buffer'
import type { Dispatcher } from 'undici'
import { failureOfStatus } from './http-status.ts'
import { createStringCutter, cutFactor } from './string-cutter.ts'
import type { TransportFailure } from './transport.ts'

/** A body that came back whole. A status other than 2xx comes with the failure it stands for. */
export type HttpAnswer = {
  status: number
  body: Buffer
  failure: TransportFailure | undefined
  /** The server ends the connection after it. */
  isLast: boolean
}

/** One POST under way. */
export type HttpExchange = { abort(): void }

/** Where to post, and how much may come back. */
export type PostOptions = {
  path: string
  headers: Record<string, string>
  maxReplyBytes: number
  /** Longer strings of the body are left out and do not count. */
  longestString?: number | undefined
  now(): number
}

// The body of a failure is read only in case it holds a JSON-RPC error.
// Of a page of HTML from a proxy the rest is not read.
const maxFailureBytes = 64 * 1024

const connectCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
])

/**
 * Posts a text and calls back once, with the whole answer or the reason why there is none.
 * `mayStart` is asked at the moment of writing, when it is certain over which connection.
 */
export function post(
  client: Dispatcher,
  options: PostOptions,
  body: Buffer,
  mayStart: () => boolean,
  done: (answer: HttpAnswer | TransportFailure) => void,
): HttpExchange {
  const chunks: Buffer[] = []
  const cut =
    options.longestString === undefined ? undefined : createStringCutter(options.longestString)
  let bytes = 0
  let received = 0
  let status = 0
  let failure: TransportFailure | undefined
  let controller: Dispatcher.DispatchController | undefined
  let isLast = false
  let isOver = false

  const finish = (answer: HttpAnswer | TransportFailure): void => {
    if (isOver) return
    isOver = true
    done(answer)
  }
  const refuse = (reason: TransportFailure): void => {
    finish(reason)
    controller?.abort(new Error(reason.detail))
  }
  /** Ends the exchange as soon as it is too large, by `content-length` if there is one, else while the body arrives. */
  const grow = (size: number, factor = 1): void => {
    const limit = failure ? maxFailureBytes : options.maxReplyBytes * factor
    if (size > limit) refuse(failure ?? { failed: 'too_large', detail: `more than ${limit} bytes` })
  }

  client.dispatch(
    {
      method: 'POST',
      path: options.path,
      headers: options.headers,
      body,
      // The callers' own limits hold for the whole exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
    },
    {
      onRequestStart: (started) => {
        controller = started
        if (!isOver && !mayStart())
          finish({ failed: 'connect', detail: 'the connection is a new one' })
        if (isOver) started.abort(new Error('given up'))
      },
      onResponseStart: (_, code, headers) => {
        // Informational answers precede the one that counts.
        if (code < 200) return
        status = code
        failure = failureOfStatus(code, textOf(headers['retry-after']), options.now())
        isLast = textOf(headers.connection)?.toLowerCase() === 'close'
        const length = Number(textOf(headers['content-length']) ?? 0)
        // A small compressed body could expand to any size, and its bytes cannot be passed on.
        if (headers['content-encoding'] !== undefined)
          refuse({ failed: 'bad_reply', detail: 'compressed, though not asked for' })
        else grow(length, cut ? cutFactor : 1)
      },
      onResponseData: (_, chunk) => {
        if (isOver) return
        received += chunk.length
        const kept = cut ? cut(chunk) : chunk
        bytes += kept.length
        if (cut) grow(received, cutFactor)
        grow(bytes)
        if (!isOver && kept.length > 0) chunks.push(kept)
      },
      onResponseEnd: () => {
        // Most answers arrive in one piece and need no copy. Checked as UTF-8 once, so that all later steps may treat the
        // bytes as latin1: one byte is one character, so places in the text are places in the bytes.
        const whole = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
        if (isUtf8(whole)) finish({ status, body: whole, failure, isLast })
        else finish(failure ?? { failed: 'bad_reply', detail: 'not UTF-8' })
      },
      onResponseError: (_, error) => finish(toFailure(error, status)),
    },
  )
  return {
    abort: () => {
      isOver = true
      controller?.abort(new Error('given up'))
    },
  }
}

function toFailure(error: Error, status: number): TransportFailure {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  // Only where no answer has begun is it certain that the node has not executed the call: `connect` may be repeated
  // elsewhere for a transaction too, `closed` may not.
  if (status === 0 && isConnectError(error, code)) return { failed: 'connect', detail: code }
  return { failed: 'closed', detail: code }
}

const isConnectError = (error: Error, code: string): boolean =>
  connectCodes.has(code) ||
  code.startsWith('ERR_TLS') ||
  code.startsWith('ERR_SSL') ||
  /certificate/i.test(error.message)

const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value
