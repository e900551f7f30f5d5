import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import type { World, WorldBlock, WorldNode } from '../../src/gateway/testing/feed-world.ts'
import { freePort } from '../helpers/free-port.ts'

type Call = { id: number; method: string; params: unknown[] }

/** A node of a scripted chain at a real address: HTTP and WebSocket. */
export type NodeServer = {
  url: string
  wsUrl: string
  node: WorldNode
  /** Methods that were asked for, without the pool's probes. */
  methods: string[]
  /** A method that takes half a second. */
  slow: string
  /** What `eth_syncing` says. */
  syncing: string
  /** Goes to a head; announces it to subscribers unless it is silent. */
  show(head: WorldBlock, silently?: boolean): void
  announce(transaction: string): void
  /** Drops all connections and refuses new ones. */
  kill(): Promise<void>
  restart(): Promise<void>
}

/** Puts a node of the world on the network; it ends with the test. */
export async function serveNode(
  world: Pick<World, 'answer' | 'show'>,
  node: WorldNode,
): Promise<NodeServer> {
  const subscribers = new Map<WebSocket, { heads?: string; pending?: string }>()
  const open = new Set<Socket>()
  let filterChanges: string[] = []
  let ids = 0

  const resultOf = ({ method, params }: Call, socket?: WebSocket): string => {
    if (method === 'eth_chainId') return '"0x1"'
    if (method === 'web3_clientVersion') return '"world/1"'
    if (method === 'eth_syncing') return server.syncing
    const isProbe = method === 'eth_getBlockByNumber' && params[0] === 'latest'
    if (!isProbe) server.methods.push(method)
    if (method === 'eth_subscribe' && socket) {
      const id = `0x${(++ids).toString(16)}`
      const own = subscribers.get(socket) ?? {}
      if (params[0] === 'newHeads') own.heads = id
      else own.pending = id
      subscribers.set(socket, own)
      return `"${id}"`
    }
    if (method === 'eth_newPendingTransactionFilter') return '"0xf"'
    if (method === 'eth_getFilterChanges') {
      const changes = JSON.stringify(filterChanges)
      filterChanges = []
      return changes
    }
    const reply = world.answer(node, { method, params: JSON.stringify(params) })
    if (!reply.ok) throw new Error(reply.error)
    return reply.result
  }

  const respond = (call: Call, socket?: WebSocket): string => {
    try {
      return `{"jsonrpc":"2.0","id":${call.id},"result":${resultOf(call, socket)}}`
    } catch (error) {
      const message = (error as Error).message
      const text = message.startsWith('{') ? message : `{"code":-32601,"message":"${message}"}`
      return `{"jsonrpc":"2.0","id":${call.id},"error":${text}}`
    }
  }

  const http = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const body: Call | Call[] = JSON.parse(Buffer.concat(chunks).toString())
      const text = Array.isArray(body)
        ? `[${body.map((call) => respond(call)).join(',')}]`
        : respond(body)
      response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    })
  })
  http.on('connection', (socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  const sockets = new WebSocketServer({ server: http })
  sockets.on('connection', (socket) => {
    socket.on('message', (data) => {
      const call: Call = JSON.parse(String(data))
      const text = respond(call, socket)
      setTimeout(() => socket.send(text), call.method === server.slow ? 500 : 0)
    })
    socket.on('close', () => subscribers.delete(socket))
    socket.on('error', () => {})
  })
  const listen = (port: number) =>
    new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve))
  const port = await freePort()
  await listen(port)
  const push = (socket: WebSocket, id: string | undefined, result: string) => {
    if (id === undefined) return
    const params = `{"subscription":"${id}","result":${result}}`
    socket.send(`{"jsonrpc":"2.0","method":"eth_subscription","params":${params}}`)
  }

  const server: NodeServer = {
    url: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    node,
    methods: [],
    slow: '',
    syncing: 'false',
    show(head, silently = false) {
      world.show(node, head)
      if (silently) return
      const call = { method: 'eth_getBlockByHash', params: `["${head.hash}"]` }
      const reply = world.answer(node, call)
      for (const [socket, { heads }] of subscribers) if (reply.ok) push(socket, heads, reply.result)
    },
    announce(transaction) {
      filterChanges.push(transaction)
      for (const [socket, { pending }] of subscribers) push(socket, pending, `"${transaction}"`)
    },
    kill: () =>
      new Promise((resolve) => {
        http.close(() => resolve())
        for (const socket of open) socket.destroy()
      }),
    restart: () => listen(port),
  }
  onTestFinished(async () => {
    if (http.listening) await server.kill()
  })
  return server
}
