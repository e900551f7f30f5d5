import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type WebSocket, WebSocketServer } from 'ws'
import type { PolkadotChain } from './chain.ts'
import { createMethods, type Endpoint, type Method } from './methods.ts'
import { RpcError } from './pool.ts'
import { subscriptions } from './subscriptions.ts'

/** How an endpoint behaves: it answers, keeps silent, or is away. */
export type Mode = 'up' | 'hanging' | 'down'

/** One endpoint of a chain, over HTTP and WebSocket on one port. */
export type Server = {
  url: string
  port: number
  setMode(mode: Mode): void
  /** Answers come so much later. */
  setLatency(ms: number): void
  /** States of blocks below are answered as thrown away. */
  prune(below: number): void
  /** Ends every connection; new ones are taken. */
  dropConnections(): void
  /** Changes an answer on its way out; undefined leaves it as it is. */
  tamper(change: ((method: string, result: unknown) => unknown) | undefined): void
  stop(): Promise<void>
}

type Request = { id?: unknown; method?: unknown; params?: unknown }

const mostBytes = 16 << 20

/** Serves a chain. More methods may be given, and a chain may have many endpoints. */
export async function serveChain(
  chain: PolkadotChain,
  { port = 0, extra = {} }: { port?: number; extra?: Record<string, Method> } = {},
): Promise<Server> {
  const endpoint: Endpoint = { prunedBelow: 0 }
  const methods: Record<string, Method> = { ...createMethods(chain, endpoint), ...extra }
  methods.rpc_methods = () => ({
    methods: [...Object.keys(methods), ...Object.keys(subscriptions)],
  })
  let mode: Mode = 'up'
  let latencyMs = 0
  let change: ((method: string, result: unknown) => unknown) | undefined

  const failure = (id: unknown, error: unknown) => {
    const code = error instanceof RpcError ? error.code : -32_000
    const data = error instanceof RpcError ? error.data : undefined
    const message = error instanceof Error ? error.message : String(error)
    return { jsonrpc: '2.0', id: id ?? null, error: { code, message, ...(data && { data }) } }
  }
  const answer = async ({ id, method, params }: Request) => {
    try {
      const work = Object.hasOwn(methods, String(method)) ? methods[String(method)] : undefined
      if (!work) throw new RpcError(-32_601, 'Method not found')
      const list = (Array.isArray(params) ? params : []) as never[]
      const result = await work(...list)
      return { jsonrpc: '2.0', id, result: change?.(String(method), result) ?? result }
    } catch (error) {
      return failure(id, error)
    }
  }

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
    const asked = parse(Buffer.concat(chunks).toString())
    const answers = await Promise.all((Array.isArray(asked) ? asked : [asked]).map(answer))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(Array.isArray(asked) ? answers : answers[0]))
  }

  let subscriptionCount = 0
  const onSocket = (socket: WebSocket) => {
    const running = new Map<string, () => void>()
    const send = (message: unknown) => {
      if (mode === 'up' && socket.readyState === socket.OPEN) socket.send(JSON.stringify(message))
    }
    const subscribe = ({ id, method, params }: Request) => {
      const { notification, begin } = subscriptions[String(method)]!
      const subscription = `sub-${++subscriptionCount}`
      const held: unknown[] = []
      let isAnswered = false
      // A client must know the subscription before its first notification comes.
      const push = (result: unknown) => {
        const message = { jsonrpc: '2.0', method: notification, params: { subscription, result } }
        if (isAnswered) send(message)
        else held.push(message)
      }
      try {
        running.set(subscription, begin(chain, push, Array.isArray(params) ? params : []))
        send({ jsonrpc: '2.0', id, result: subscription })
      } catch (error) {
        send(failure(id, error))
      }
      isAnswered = true
      for (const message of held) send(message)
    }
    const one = async (request: Request) => {
      const method = String(request.method)
      if (Object.hasOwn(subscriptions, method)) return subscribe(request)
      if (Object.values(subscriptions).some(({ unsubscribe }) => unsubscribe === method)) {
        const name = String((request.params as unknown[] | undefined)?.[0])
        running.get(name)?.()
        return send({ jsonrpc: '2.0', id: request.id, result: running.delete(name) })
      }
      send(await answer(request))
    }
    socket.on('message', async (data) => {
      if (mode === 'hanging') return
      if (latencyMs > 0) await delay(latencyMs)
      const asked = parse(String(data))
      if (!Array.isArray(asked)) return void one(asked)
      const all = asked.some(({ method }) => Object.hasOwn(subscriptions, String(method)))
      if (all) for (const request of asked) await one(request)
      else send(await Promise.all(asked.map(answer)))
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      for (const end of running.values()) end()
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
  return {
    url: `ws://127.0.0.1:${bound}`,
    port: bound,
    setMode: (next) => {
      mode = next
      if (next === 'down') dropConnections()
    },
    setLatency: (ms) => {
      latencyMs = ms
    },
    prune: (below) => {
      endpoint.prunedBelow = below
    },
    dropConnections,
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

const parse = (text: string): Request | Request[] => {
  try {
    const asked = JSON.parse(text) as Request | Request[] | null
    return asked ?? {}
  } catch {
    return {}
  }
}
