import { createClient } from '@polkadot-api/substrate-client'
import { getWsProvider, type WebSocketClass } from '@polkadot-api/ws-provider'
import WebSocket from 'ws'
import type { Clock } from '../../lib/clock.ts'
import { headersOf, nameOf } from '../nodes/node-name.ts'
import { createRateGate } from '../nodes/rate-gate.ts'

/** A node as the configuration names it. */
export type NodeOptions = {
  url: string
  name?: string
  headers?: Record<string, string>
  priority?: number
  archive?: boolean
  requests_per_second?: number
}

/** A node could not be asked, or did not answer in time: another one may. */
export class NodeFailure extends Error {
  override name = 'NodeFailure'
}

/** The node answered with an error of its own. */
export class NodeRefusal extends Error {
  override name = 'NodeRefusal'
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** How a node stands, for `/status`. */
export type NodeStatus = {
  name: string
  state: 'connecting' | 'healthy' | 'wrong_chain'
  head: number | null
  last_error: string
}

/** One node behind one WebSocket, which connects again by itself. */
export type Node = {
  name: string
  priority: number
  archive: boolean | undefined
  /** Connected, and of the chain that the others are of. */
  isUp(): boolean
  /** The number of the newest final block that it announced; -1 before the first. */
  head(): number
  request(method: string, params: readonly unknown[], signal: AbortSignal): Promise<unknown>
  status(): NodeStatus
  stop(): void
}

/** What a node needs to know of the rest. */
export type NodeTools = {
  clock: Clock
  /** Whether a chain with this first block is ours. */
  admits(genesis: string): boolean
  /** It connected, announced a block, or disconnected. */
  onChange(): void
  requestTimeoutMs: number
  probeEveryMs: number
}

const connectTimeoutMs = 5_000
const maxReplyBytes = 64 << 20

/** The class of sockets to one node, with its headers; the library wants a class. */
const socketClass = (headers: Record<string, string>, silentMs: number): WebSocketClass =>
  class extends WebSocket {
    constructor(url: string) {
      super(url, {
        headers,
        perMessageDeflate: false,
        maxPayload: maxReplyBytes,
        handshakeTimeout: Math.min(connectTimeoutMs, silentMs),
        followRedirects: false,
      })
    }
  } as unknown as WebSocketClass

/** Opens a node. */
export function openNode(options: NodeOptions, tools: NodeTools): Node {
  const { clock, onChange, requestTimeoutMs, probeEveryMs } = tools
  const url = new URL(options.url)
  const headers = headersOf(url, options.headers ?? {})
  const name = nameOf({ name: options.name, url })
  const gate = createRateGate(options.requests_per_second)
  const stopping = new AbortController()
  let connection: AbortController | undefined
  let state: NodeStatus['state'] = 'connecting'
  let head = -1
  let lastError = ''

  const lose = (reason: string) => {
    if (!connection) return
    lastError = reason
    connection.abort(new NodeFailure(reason))
    connection = undefined
    if (state === 'healthy') state = 'connecting'
    onChange()
  }
  // A node that says nothing for longer, though it is asked, is left and called again.
  const heartbeatTimeout = 3 * probeEveryMs
  const provider = getWsProvider(`${url.protocol}//${url.host}${url.pathname}${url.search}`, {
    timeout: connectTimeoutMs,
    heartbeatTimeout,
    websocketClass: socketClass(headers, heartbeatTimeout),
    onStatusChanged: (status) => {
      if (status.type !== 'CONNECTED') return lose('the connection ended')
      connection = new AbortController()
      void greet(AbortSignal.any([connection.signal, stopping.signal]))
    },
  })
  const client = createClient(provider)

  const ask = (method: string, params: readonly unknown[], signal: AbortSignal) =>
    new Promise<unknown>((resolve, reject) => {
      const held = connection
      if (!held) return reject(new NodeFailure(lastError || 'not connected'))
      if (signal.aborted) return reject(signal.reason)
      const end = () => {
        clearTimeout(timer)
        cancel()
        signal.removeEventListener('abort', onAbort)
        held.signal.removeEventListener('abort', onLoss)
      }
      const onAbort = () => {
        end()
        reject(signal.reason)
      }
      const onLoss = () => {
        end()
        reject(held.signal.reason)
      }
      const timer = setTimeout(() => {
        end()
        reject(new NodeFailure(`${method} was not answered within ${requestTimeoutMs} ms`))
      }, requestTimeoutMs)
      signal.addEventListener('abort', onAbort)
      held.signal.addEventListener('abort', onLoss)
      const cancel = client._request<unknown, unknown>(method, [...params], {
        onSuccess: (result) => {
          end()
          resolve(result)
        },
        onError: (error) => {
          end()
          const { code = 0, message } = error as Error & { code?: number }
          reject(new NodeRefusal(code, message))
        },
      })
    })

  const request: Node['request'] = async (method, params, signal) => {
    for (let wait = gate.waitMs(clock.now()); wait > 0; wait = gate.waitMs(clock.now()))
      await clock.sleep(wait, signal)
    gate.take(clock.now())
    try {
      const result = await ask(method, params, signal)
      gate.relax()
      return result
    } catch (error) {
      if (error instanceof NodeRefusal && isTooMuch(error)) gate.coolDown(clock.now())
      throw error
    }
  }

  const noteHead = (header: unknown) => {
    const number = Number((header as { number?: unknown } | null)?.number)
    if (!Number.isSafeInteger(number) || number <= head) return
    head = number
    onChange()
  }

  const probe = async (signal: AbortSignal) => {
    const hash = await request('chain_getFinalizedHead', [], signal)
    noteHead(await request('chain_getHeader', [hash], signal))
  }

  /** Looks who it is before anything else is asked of it, and listens to its blocks. */
  const greet = async (signal: AbortSignal): Promise<void> => {
    try {
      const genesis = await request('chain_getBlockHash', [0], signal)
      if (typeof genesis !== 'string' || !tools.admits(genesis)) {
        state = 'wrong_chain'
        lastError = `is of another chain, which begins with ${genesis}`
        onChange()
        return
      }
      head = -1
      await probe(signal)
      state = 'healthy'
      onChange()
      listen(signal)
      for (;;) {
        await clock.sleep(probeEveryMs, signal)
        await probe(signal)
      }
    } catch (error) {
      if (signal.aborted) return
      lastError = error instanceof Error ? error.message : String(error)
      // The library opens another connection, and that one is greeted again.
      state = 'connecting'
      onChange()
      await clock.sleep(probeEveryMs, signal).catch(() => {})
      if (!signal.aborted) void greet(signal)
    }
  }

  const listen = (signal: AbortSignal) => {
    client._request<string, unknown>('chain_subscribeFinalizedHeads', [], {
      onSuccess: (id, follow) => {
        const end = follow(id, { next: noteHead, error: () => {} })
        signal.addEventListener('abort', end, { once: true })
      },
      // Then there is the probe.
      onError: () => {},
    })
  }

  return {
    name,
    priority: options.priority ?? 0,
    archive: options.archive,
    isUp: () => connection !== undefined && state === 'healthy',
    head: () => head,
    request,
    status: () => ({ name, state, head: head < 0 ? null : head, last_error: lastError }),
    stop: () => {
      stopping.abort(new NodeFailure('the chain is stopped'))
      lose('the chain is stopped')
      client.destroy()
    },
  }
}

const isTooMuch = ({ code, message }: NodeRefusal): boolean =>
  code === -32_005 || code === 429 || /rate limit|too many requests/i.test(message)
