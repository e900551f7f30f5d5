// One WebSocket to a node. It connects again by itself, and what belongs to a connection (its subscription, its calls) ends with it.

import { createClient } from '@polkadot-api/substrate-client'
import { getWsProvider, type WebSocketClass } from '@polkadot-api/ws-provider'
import WebSocket from 'ws'
import { NodeFault } from '../nodes/fault.ts'
import { headersOf } from '../nodes/node-name.ts'

/** One WebSocket to a node, which connects again by itself. */
export type Connection = {
  /**
   * Ends with the connection that is open now. Waits for the first attempt to connect; later it throws
   * at once where there is no connection.
   */
  opened(): Promise<AbortSignal>
  /** Throws NodeFault; the caller's signal limits the time. */
  request(method: string, params: readonly unknown[], signal: AbortSignal): Promise<unknown>
  /** Listens to final blocks on the open connection; once for each connection. */
  listen(): void
  isListening(): boolean
  /** Not open although an attempt to connect has ended. */
  isLost(): boolean
  stop(): void
}

/** Whom a connection notifies. */
export type ConnectionOptions = {
  url: string
  headers?: Record<string, string>
  /** A node that is silent for longer although it is probed is dropped and called again. */
  silentMs: number
  onOpen(): void
  onLoss(reason: string): void
  /** The number of a final block that the node has announced. */
  onHead(number: number): void
}

const connectTimeoutMs = 5_000
// Metadata of a runtime has some hundred kilobytes; blocks of the relay chain may have several
// megabytes.
const maxReplyBytes = 64 << 20

/** The class of sockets to one node, with its headers; the library requires a class. */
const socketClass = (headers: Record<string, string>, silentMs: number): WebSocketClass =>
  class extends WebSocket {
    constructor(url: string) {
      super(url, {
        headers,
        // Compression contexts take memory per connection, and a small reply may expand to a large one.
        perMessageDeflate: false,
        maxPayload: maxReplyBytes,
        handshakeTimeout: Math.min(connectTimeoutMs, silentMs),
        followRedirects: false,
      })
    }
  } as unknown as WebSocketClass

/** Connects to a node. */
export function openConnection(options: ConnectionOptions): Connection {
  const { silentMs } = options
  const url = new URL(options.url)
  const headers = headersOf(url, options.headers ?? {})
  const firstAttempt = Promise.withResolvers<void>()
  // Its signal ends everything that depends on the open connection.
  let link: AbortController | undefined
  let isListening = false
  let isStopped = false
  let lastError = 'not connected'
  let wasTried = false

  const lose = (reason: string) => {
    lastError = reason
    wasTried = true
    firstAttempt.resolve()
    link?.abort(new NodeFault('down', reason))
    link = undefined
    isListening = false
    if (!isStopped) options.onLoss(reason)
  }
  const provider = getWsProvider(`${url.protocol}//${url.host}${url.pathname}${url.search}`, {
    timeout: connectTimeoutMs,
    heartbeatTimeout: silentMs,
    websocketClass: socketClass(headers, silentMs),
    onStatusChanged: ({ type }) => {
      if (type === 'CONNECTED') {
        link = new AbortController()
        firstAttempt.resolve()
        options.onOpen()
      } else if (type !== 'CONNECTING') lose(link ? 'connection closed' : 'cannot connect')
      else if (link) lose('connection closed')
    },
  })
  const client = createClient(provider)

  const request: Connection['request'] = (method, params, signal) =>
    new Promise((resolve, reject) => {
      const held = link
      if (!held) return reject(new NodeFault('down', lastError))
      if (signal.aborted) return reject(signal.reason)
      // Removes both listeners: the signals live longer than a request.
      const end = () => {
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
      signal.addEventListener('abort', onAbort)
      held.signal.addEventListener('abort', onLoss)
      const cancel = client._request<unknown, unknown>(method, [...params], {
        onSuccess: (result) => {
          end()
          resolve(result)
        },
        onError: (error) => {
          end()
          reject(faultOf(error as Error & { code?: number }))
        },
      })
    })

  const noteHead = (header: unknown) => {
    const number = readNumber(header)
    if (number !== undefined) options.onHead(number)
  }

  return {
    opened: async () => {
      if (!link) await firstAttempt.promise
      if (!link) throw new NodeFault('down', lastError)
      return link.signal
    },
    request,
    listen: () => {
      const held = link
      if (!held || isListening) return
      isListening = true
      client._request<string, unknown>('chain_subscribeFinalizedHeads', [], {
        onSuccess: (id, follow) => {
          const end = follow(id, { next: noteHead, error: () => {} })
          held.signal.addEventListener('abort', end, { once: true })
        },
        // Without a subscription the probes find new blocks.
        onError: () => {},
      })
    },
    isListening: () => isListening,
    isLost: () => link === undefined && wasTried,
    stop: () => {
      isStopped = true
      lose('the chain is stopped')
      client.destroy()
    },
  }
}

/** The number of a header. */
export function readNumber(header: unknown): number | undefined {
  const number = Number((header as { number?: unknown } | null)?.number)
  return Number.isSafeInteger(number) ? number : undefined
}

const isBusy = /rate limit|too many requests/i
const isPruned = /discarded|unknown ?block|not found in the database|prun/i

/** What an error of a node means; 4003 is how nodes report a state that they have pruned. */
function faultOf({ code = 0, message }: { code?: number; message: string }): NodeFault {
  if (code === -32_005 || code === 429 || isBusy.test(message))
    return new NodeFault('busy', message)
  if (code === 4003 || isPruned.test(message)) return new NodeFault('missing', message)
  return new NodeFault('failed', message)
}
