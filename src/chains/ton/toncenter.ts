import { Agent, request } from 'undici'
import { headersOf, nameOf } from '../upstream/upstream-name.ts'

/** How a node is reached. */
export type UpstreamOptions = {
  /** The API's address, with its version: `http://127.0.0.1:8081/api/v2`. */
  url: string
  name?: string
  headers?: Record<string, string>
  /** Nodes with the lowest number are asked first. */
  priority?: number
  requests_per_second?: number
}

/** Why a call came to nothing. */
export type Failure =
  /** No answer, or one that means nothing. */
  | { kind: 'down'; reason: string }
  /** Too many requests. */
  | { kind: 'busy'; reason: string; retryAfterMs: number | undefined }
  /** The node has not got so far. */
  | { kind: 'behind'; reason: string }
  /** The node does not have it, or not any more. */
  | { kind: 'missing'; reason: string }
  /** The node has understood and will not do it. */
  | { kind: 'refused'; reason: string }

/** What a call came to. */
export type Reply = { ok: true; result: unknown } | { ok: false; failure: Failure }

/** One node that speaks the toncenter HTTP API v2. */
export type Toncenter = {
  name: string
  call(method: string, params: object, signal: AbortSignal): Promise<Reply>
  stop(): Promise<void>
}

const maxReplyBytes = 128 * 1024 * 1024
const isBehind = /NOTREADY|not applied|not ready|too new/i
const isMissing = /cannot find|not found|not in db|no such block|cannot load|651|pruned|archiv|gc/i

/** A client of one node. */
export function createToncenter(
  { url: text, name, headers = {} }: UpstreamOptions,
  { timeoutMs = 10_000 } = {},
): Toncenter {
  const url = new URL(text)
  const target = new URL(`${url.pathname.replace(/\/(?:jsonRPC\/?)?$/, '')}/jsonRPC`, url)
  target.search = url.search
  const dispatcher = new Agent({
    connections: 32,
    pipelining: 1,
    keepAliveTimeout: 20_000,
    maxResponseSize: maxReplyBytes,
    connect: { timeout: timeoutMs },
  })
  const allHeaders = { ...headersOf(url, headers), 'content-type': 'application/json' }
  target.username = ''
  target.password = ''
  return {
    name: nameOf({ name, url }),
    call: async (method, params, signal) => {
      signal.throwIfAborted()
      const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method, params })
      try {
        const response = await request(target, {
          method: 'POST',
          headers: allHeaders,
          body,
          dispatcher,
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
        })
        const reply = await response.body.text()
        const { statusCode } = response
        if (statusCode === 429)
          return failed({
            kind: 'busy',
            reason: 'too many requests',
            retryAfterMs: readRetryAfter(response.headers['retry-after']),
          })
        return readReply(statusCode, reply)
      } catch (error) {
        signal.throwIfAborted()
        return failed({
          kind: 'down',
          reason: error instanceof Error ? error.message : 'no answer',
        })
      }
    },
    stop: () => dispatcher.destroy(),
  }
}

const failed = (failure: Failure): Reply => ({ ok: false, failure })

function readReply(status: number, text: string): Reply {
  let reply: unknown
  try {
    reply = JSON.parse(text)
  } catch {
    return failed({ kind: 'down', reason: `status ${status} without JSON` })
  }
  const { ok, result, error, code } = (reply ?? {}) as Record<string, unknown>
  if (ok === true && result !== undefined) return { ok: true, result }
  const reason = typeof error === 'string' ? error.slice(0, 300) : `status ${status}`
  if (code === 429) return failed({ kind: 'busy', reason, retryAfterMs: undefined })
  if (isBehind.test(reason)) return failed({ kind: 'behind', reason })
  if (isMissing.test(reason)) return failed({ kind: 'missing', reason })
  if (status >= 400 && status < 500) return failed({ kind: 'refused', reason })
  return failed({ kind: 'down', reason })
}

const readRetryAfter = (header: string | string[] | undefined): number | undefined => {
  const seconds = Number(Array.isArray(header) ? header[0] : header)
  return Number.isFinite(seconds) && header !== undefined ? seconds * 1_000 : undefined
}
