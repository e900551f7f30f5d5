import { Agent, request } from 'undici'
import { headersOf, nameOf } from '../evm/pool/upstream-name.ts'

/** How a node is reached. */
export type UpstreamOptions = {
  /** The API's address, with its version: `http://127.0.0.1:8081/api/v2`. */
  url: string
  name?: string
  headers?: Record<string, string>
  /** Nodes with the lowest number are asked first. */
  priority?: number
  requests_per_second?: number
  /** Whether its API v3 is used where it offers one; it is without a word. */
  v3?: boolean
  /** Where that is; beside API v2 without it. */
  v3_url?: string
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

/** What is asked of API v3: names that may come several times. */
export type Query = readonly (readonly [name: string, value: string])[]

/** One node that speaks the toncenter HTTP API v2, and perhaps v3. */
export type Toncenter = {
  name: string
  call(method: string, params: object, signal: AbortSignal): Promise<Reply>
  /** Asks API v3; not there where nobody has said where that would be. */
  get?(path: string, query: Query, signal: AbortSignal): Promise<Reply>
  stop(): Promise<void>
}

const maxReplyBytes = 128 * 1024 * 1024
const isBehind = /NOTREADY|not applied|not ready|too new/i
const isMissing = /cannot find|not found|not in db|no such block|cannot load|651|pruned|archiv|gc/i

/** A client of one node. */
export function createToncenter(
  options: UpstreamOptions,
  { timeoutMs = 10_000, indexTimeoutMs = 5_000 } = {},
): Toncenter {
  const { name, headers = {}, v3 = true } = options
  const url = new URL(options.url)
  const target = new URL(`${pathOf(url)}/jsonRPC`, url)
  target.search = url.search
  const index = v3 ? indexOf(options, url) : undefined
  const dispatcher = new Agent({
    connections: 32,
    pipelining: 1,
    keepAliveTimeout: 20_000,
    maxResponseSize: maxReplyBytes,
    connect: { timeout: timeoutMs },
  })
  const send = async (
    to: URL,
    how: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: string },
    read: (status: number, text: string) => Reply,
    signal: AbortSignal,
    withinMs = timeoutMs,
  ): Promise<Reply> => {
    signal.throwIfAborted()
    try {
      const response = await request(to, {
        ...how,
        dispatcher,
        signal: AbortSignal.any([signal, AbortSignal.timeout(withinMs)]),
      })
      const reply = await response.body.text()
      if (response.statusCode !== 429) return read(response.statusCode, reply)
      const retryAfterMs = readRetryAfter(response.headers['retry-after'])
      return failed({ kind: 'busy', reason: 'too many requests', retryAfterMs })
    } catch (error) {
      signal.throwIfAborted()
      return failed({ kind: 'down', reason: error instanceof Error ? error.message : 'no answer' })
    }
  }
  const allHeaders = headersOf(url, headers)
  const jsonHeaders = { ...allHeaders, 'content-type': 'application/json' }
  const indexHeaders = index && headersOf(index, headers)
  for (const one of [target, index]) if (one) [one.username, one.password] = ['', '']
  return {
    name: nameOf({ name, url }),
    call: (method, params, signal) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method, params })
      return send(target, { method: 'POST', headers: jsonHeaders, body }, readReply, signal)
    },
    ...(index && {
      get: (path: string, query: Query, signal: AbortSignal) => {
        const to = new URL(`${pathOf(index)}/${path}`, index)
        // What stands in the address, such as a key, goes along.
        to.search = String(
          new URLSearchParams([...index.searchParams, ...query.map((pair) => [...pair])]),
        )
        const how = { method: 'GET', headers: indexHeaders! } as const
        return send(to, how, readIndexReply, signal, indexTimeoutMs)
      },
    }),
    stop: () => dispatcher.destroy(),
  }
}

const pathOf = (url: URL): string => url.pathname.replace(/\/(?:jsonRPC\/?)?$/, '')

/** Where API v3 is: where the configuration says, or beside an API v2 that is named so. */
function indexOf({ v3_url }: UpstreamOptions, url: URL): URL | undefined {
  if (v3_url !== undefined) return new URL(v3_url)
  if (!/\/v2$/.test(pathOf(url))) return undefined
  const index = new URL(url)
  index.pathname = pathOf(url).replace(/v2$/, 'v3')
  return index
}

const failed = (failure: Failure): Reply => ({ ok: false, failure })

function readReply(status: number, text: string): Reply {
  const reply = parse(text)
  if (reply === undefined) return failed({ kind: 'down', reason: `status ${status} without JSON` })
  const { ok, result, error, code } = (reply ?? {}) as Record<string, unknown>
  if (ok === true && result !== undefined) return { ok: true, result }
  const reason = typeof error === 'string' ? error.slice(0, 300) : `status ${status}`
  if (code === 429) return failed({ kind: 'busy', reason, retryAfterMs: undefined })
  if (isBehind.test(reason)) return failed({ kind: 'behind', reason })
  if (isMissing.test(reason)) return failed({ kind: 'missing', reason })
  if (status >= 400 && status < 500) return failed({ kind: 'refused', reason })
  return failed({ kind: 'down', reason })
}

/** API v3 answers with the thing itself, and with an error beside a status that says what is wrong. */
function readIndexReply(status: number, text: string): Reply {
  const reply = parse(text)
  const isRecord = typeof reply === 'object' && reply !== null && !Array.isArray(reply)
  if (status === 200 && isRecord) return { ok: true, result: reply }
  const { error } = (reply ?? {}) as { error?: unknown }
  const reason = typeof error === 'string' ? error.slice(0, 300) : `status ${status}`
  if (status === 404) return failed({ kind: 'missing', reason })
  if (status >= 400 && status < 500) return failed({ kind: 'refused', reason })
  return failed({ kind: 'down', reason })
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const readRetryAfter = (header: string | string[] | undefined): number | undefined => {
  const seconds = Number(Array.isArray(header) ? header[0] : header)
  return Number.isFinite(seconds) && header !== undefined ? seconds * 1_000 : undefined
}
