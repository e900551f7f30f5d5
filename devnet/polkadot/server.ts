import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type WebSocket, WebSocketServer } from 'ws'
import { createArchive } from './archive.ts'
import type { PolkadotChain } from './chain.ts'
import { type Connection, createConnection } from './connection.ts'
import type { FollowLimits } from './follow.ts'
import { createLookup, createMethods, type Endpoint } from './methods.ts'
import {
  answerRequest,
  failure,
  type Method,
  parseRequests,
  type Request,
  RpcError,
} from './rpc.ts'

/** How an endpoint behaves: it answers, keeps silent, or is unreachable. */
export type Mode = 'up' | 'hanging' | 'down'

/** One endpoint of a chain, over HTTP and WebSocket on one port. */
export type Server = {
  url: string
  port: number
  setMode(mode: Mode): void
  /** Answers come so much later. */
  setLatency(ms: number): void
  /** States of blocks below are answered as discarded. */
  prune(below: number): void
  /** How many WebSocket clients there are. */
  connections(): number
  /** Ends every connection; new ones are taken. */
  dropConnections(): void
  /** Makes all followers of the head start again, as a node does that fell behind. */
  stopFollows(): void
  /** Changes an answer on its way out; undefined leaves it as it is. */
  tamper(change: ((method: string, result: unknown) => unknown) | undefined): void
  stop(): Promise<void>
}

/** How an endpoint is served. */
export type ServerOptions = {
  port?: number
  /** More methods. */
  extra?: Record<string, Method>
  /** Instead of what is allowed to a client otherwise. */
  limits?: Partial<FollowLimits & { unsentBytes: number }>
}

// Of a request, and of what a client has not read.
const mostBytes = 64 << 20
// A follower with this much unread must start again.
const mostUnsentBytes = 8 << 20
const followLimits: FollowLimits = { pinned: 512, operations: 16, page: 100 }

/** Serves a chain. More methods may be given, and a chain may have many endpoints. */
export async function serveChain(
  chain: PolkadotChain,
  { port = 0, extra = {}, limits = {} }: ServerOptions = {},
): Promise<Server> {
  const endpoint: Endpoint = { prunedBelow: 0 }
  const lookup = createLookup(chain, endpoint)
  const methods: Record<string, Method> = {
    ...createMethods(chain, lookup),
    ...createArchive(chain, lookup.stateOf),
    ...extra,
    rpc_methods: () => ({
      methods: Object.keys(
        connect(
          () => {},
          () => false,
        ).methods,
      ).sort(),
    }),
  }
  let mode: Mode = 'up'
  let latencyMs = 0
  let change: ((method: string, result: unknown) => unknown) | undefined
  const changed = (method: string, result: unknown) => change?.(method, result)
  const connections = new Set<Connection>()
  const connect = (send: (message: unknown) => void, isBehind: () => boolean) =>
    createConnection({
      chain,
      stateOf: lookup.stateOf,
      limits: { ...followLimits, ...limits },
      methods,
      send,
      isBehind,
      change: changed,
    })

  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    let size = 0
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > mostBytes) return void request.destroy()
      chunks.push(chunk)
    }
    if (mode === 'hanging') return
    if (latencyMs > 0) await delay(latencyMs)
    const asked = parseRequests(Buffer.concat(chunks).toString())
    const answer = (one: Request) => answerRequest(one, methods, changed)
    const reply = Array.isArray(asked)
      ? asked.map(answer).filter((one) => one !== undefined)
      : asked
        ? answer(asked)
        : failure(new RpcError(-32_700, 'Parse error'))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(reply))
  }

  const onSocket = (socket: WebSocket) => {
    const send = (message: unknown) => {
      if (mode !== 'up' || socket.readyState !== socket.OPEN) return
      if (socket.bufferedAmount > mostBytes) socket.terminate()
      else socket.send(JSON.stringify(message))
    }
    const isBehind = () => socket.bufferedAmount > (limits.unsentBytes ?? mostUnsentBytes)
    const connection = connect(send, isBehind)
    connections.add(connection)
    socket.on('message', async (data) => {
      if (mode === 'hanging') return
      if (latencyMs > 0) await delay(latencyMs)
      connection.take(String(data))
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      connections.delete(connection)
      connection.close()
    })
  }

  const server = createServer((request, response) => {
    onRequest(request, response).catch(() => response.destroy())
  })
  const sockets = new WebSocketServer({ server, maxPayload: mostBytes })
  sockets.on('connection', onSocket)
  server.on('connection', (socket) => {
    if (mode === 'down') socket.destroy()
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const bound = (server.address() as AddressInfo).port
  const dropConnections = () => {
    for (const socket of sockets.clients) socket.terminate()
    server.closeAllConnections()
  }
  const stopFollows = () => {
    for (const connection of connections) connection.stopFollows()
  }
  return {
    url: `ws://127.0.0.1:${bound}`,
    port: bound,
    setMode: (next) => {
      const wasSilent = mode === 'hanging'
      mode = next
      if (next === 'down') dropConnections()
      // They missed something, which a follower must know.
      else if (wasSilent) stopFollows()
    },
    setLatency: (ms) => {
      latencyMs = ms
    },
    prune: (below) => {
      endpoint.prunedBelow = below
    },
    connections: () => connections.size,
    dropConnections,
    stopFollows,
    tamper: (next) => {
      change = next
    },
    stop: async () => {
      dropConnections()
      sockets.close()
      server.close()
      await once(server, 'close')
    },
  }
}
