// The transport to one node: the toncenter HTTP API, which several server programs implement with differences that are settled
// here, so that the rest of the family sees one form.

import { Agent, request } from 'undici'
import { NodeFault, parseRetryAfter } from '../nodes/fault.ts'
import type { NodeConfig } from '../nodes/node.ts'
import { headersOf } from '../nodes/node-name.ts'

/** How a node is reached; `url` names the API with its version: `http://127.0.0.1:8081/api/v2`. */
export type UpstreamOptions = NodeConfig & {
  /** The key of a lite server, whose `url` is `tcp://host:port`; without it the node has an HTTP API. */
  key?: Buffer
  /** Whether its API v3 is used where it offers one; true by default. */
  v3?: boolean
  /** Where that is; beside API v2 by default. */
  v3_url?: string
}

/** What is asked of API v3: names that may come several times. */
export type Query = readonly (readonly [name: string, value: string])[]

/** One node that speaks the toncenter HTTP API v2, and perhaps v3. Calls throw NodeFault. */
export type Toncenter = {
  call(method: string, params: object, signal: AbortSignal): Promise<unknown>
  /** Asks API v3; missing where its address is not known. */
  get?(path: string, query: Query, signal: AbortSignal): Promise<Record<string, unknown>>
  stop(): Promise<void>
}

const maxReplyBytes = 128 * 1024 * 1024
// What a get-method gave is what the author of the contract likes. Its cells come as base64 and, beside it, as JSON.
const maxResultBytes = 4 * 1024 * 1024
const connectTimeoutMs = 10_000
// What lite servers say of a block or state that they do not have: the same whether not yet or no longer.
const isMissing =
  /not in db|cannot (?:find|load) (?:block|state|proof)|unable to load block|block not found|no such block|state already gc/i
const isBehind = /NOTREADY|not applied|not synced|too new/i

/** A client of one node. The caller's signal limits the time of each call. */
export function createToncenter(options: UpstreamOptions, { now }: { now(): number }): Toncenter {
  const { headers = {}, v3 = true } = options
  const url = new URL(options.url)
  const target = new URL(`${pathOf(url)}/jsonRPC`, url)
  target.search = url.search
  const index = v3 ? indexOf(options, url) : undefined
  const dispatcher = new Agent({
    connections: 32,
    pipelining: 1,
    keepAliveTimeout: 20_000,
    maxResponseSize: maxReplyBytes,
    connect: { timeout: connectTimeoutMs },
  })
  const send = async <result>(
    to: URL,
    how: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: string },
    read: (status: number, text: string) => result,
    { signal, mostBytes }: { signal: AbortSignal; mostBytes: number },
  ): Promise<result> => {
    signal.throwIfAborted()
    const response = await request(to, { ...how, dispatcher, signal })
    const reply = await readBody(response.body, mostBytes)
    if (response.statusCode !== 429) return read(response.statusCode, reply)
    const [retryAfter] = [response.headers['retry-after']].flat()
    throw new NodeFault('busy', 'too many requests', parseRetryAfter(retryAfter, now()))
  }
  const allHeaders = headersOf(url, headers)
  const jsonHeaders = { ...allHeaders, 'content-type': 'application/json' }
  const indexHeaders = index && headersOf(index, headers)
  for (const one of [target, index]) if (one) [one.username, one.password] = ['', '']
  return {
    call: (method, params, signal) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method, params })
      const how = { method: 'POST', headers: jsonHeaders, body } as const
      const mostBytes = method === 'runGetMethod' ? maxResultBytes : maxReplyBytes
      return send(target, how, readReply, { signal, mostBytes })
    },
    ...(index && {
      get: (path: string, query: Query, signal: AbortSignal) => {
        const to = new URL(`${pathOf(index)}/${path}`, index)
        // Parameters of the configured address, such as a key, are kept.
        to.search = String(
          new URLSearchParams([...index.searchParams, ...query.map((pair) => [...pair])]),
        )
        const how = { method: 'GET', headers: indexHeaders! } as const
        return send(to, how, readIndexReply, { signal, mostBytes: maxReplyBytes })
      },
    }),
    stop: () => dispatcher.destroy(),
  }
}

/** The text of a reply; ends the connection where it is longer. */
async function readBody(body: AsyncIterable<Buffer>, mostBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    length += chunk.length
    if (length > mostBytes)
      throw new NodeFault('refused', `the reply has more than ${mostBytes} bytes`)
  }
  return Buffer.concat(chunks).toString()
}

/** What an error of a call means: anything but a fault that was read from a reply is not an answer. */
export const faultOf = (error: unknown): NodeFault =>
  error instanceof NodeFault
    ? error
    : new NodeFault('down', error instanceof Error ? error.message : 'no answer')

const pathOf = (url: URL): string => url.pathname.replace(/\/(?:jsonRPC\/?)?$/, '')

/** Where API v3 is: where the configuration says, or beside an API v2 that is named so. */
function indexOf({ v3_url }: UpstreamOptions, url: URL): URL | undefined {
  if (v3_url !== undefined) return new URL(v3_url)
  if (!/\/v2$/.test(pathOf(url))) return undefined
  const index = new URL(url)
  index.pathname = pathOf(url).replace(/v2$/, 'v3')
  return index
}

function readReply(status: number, text: string): unknown {
  const reply = parse(text)
  if (reply === undefined) throw new NodeFault('down', `status ${status} without JSON`)
  const { ok, result, error, code } = (reply ?? {}) as Record<string, unknown>
  if (ok === true && result !== undefined) return result
  const reason = typeof error === 'string' ? error.slice(0, 300) : `status ${status}`
  if (code === 429) throw new NodeFault('busy', reason)
  throw faultOfText(reason, status >= 400 && status < 500 ? 'refused' : 'failed')
}

/** What the text of a lite server means, which HTTP servers pass on; `otherwise` where it is none that is known. */
export function faultOfText(reason: string, otherwise: 'refused' | 'failed'): NodeFault {
  if (isMissing.test(reason)) return new NodeFault('missing', reason)
  if (isBehind.test(reason)) return new NodeFault('behind', reason)
  return new NodeFault(otherwise, reason)
}

/** API v3 replies with the object itself, or with an error and its status. */
function readIndexReply(status: number, text: string): Record<string, unknown> {
  const reply = parse(text)
  const isRecord = typeof reply === 'object' && reply !== null && !Array.isArray(reply)
  if (status === 200 && isRecord) return reply as Record<string, unknown>
  const { error } = (reply ?? {}) as { error?: unknown }
  const reason = typeof error === 'string' ? error.slice(0, 300) : `status ${status}`
  if (status === 404) throw new NodeFault('missing', reason)
  throw new NodeFault(status >= 400 && status < 500 ? 'refused' : 'failed', reason)
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
