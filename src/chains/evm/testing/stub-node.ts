// Nodes, pools and clocks for the tests of the EVM chain: real servers on a local port, with a fault that the
// test selects. Production code does not import this folder.

import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

type Call = { id: number; method: string; params: unknown[] }

/** The faults that a stub node can have. */
export type Lie =
  | 'garbage'
  | 'html 502'
  | '429'
  | '429 without a time'
  | 'cut body'
  | 'cut JSON'
  | 'damaged JSON'
  | 'not UTF-8'
  | 'wrong id'
  | 'null id'
  | 'no id'
  | 'id of a neighbour'
  | 'duplicate keys'
  | 'neither result nor error'
  | 'empty'
  | 'redirect'
  | 'compressed'
  | '64 MiB'
  | '64 MiB in pieces'
  | 'trickle'
  | 'silence'
  | 'closes at once'
  | 'closes after the headers'
  | 'rate limit error'

/** How a stub answers batches. */
export type BatchManner =
  | 'fine'
  | 'refused'
  | 'status 400'
  | 'at most 10'
  | 'reversed'
  | 'lacks one'
  | 'one twice'
  | 'as one object'

/** A node made of nothing, for tests. */
export type StubNode = {
  url: string
  wsUrl: string
  chainId: number
  head: number
  /** What it does to the calls of `eth_call`; probes are answered honestly. */
  lie: Lie | undefined
  batches: BatchManner
  /** Every method that was asked, and the size of every batch. */
  methods: string[]
  batchSizes: number[]
  /** Milliseconds before each answer. */
  delayMs: number
  answer(call: Call): unknown
  /** How many connections are open. */
  connections(): number
  stop(): Promise<void>
}

/** Starts a stub; its `eth_call` answers its name and what it was asked. */
export async function startStub(name: string, { port = 0 } = {}): Promise<StubNode> {
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString())
      setTimeout(() => reply(stub, response, body), stub.delayMs)
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  const ws = new WebSocketServer({ server, perMessageDeflate: false })
  ws.on('connection', (connection) => {
    connection.on('error', () => {})
    connection.on('message', (data) => {
      const call = JSON.parse(data.toString()) as Call
      stub.methods.push(call.method)
      if (stub.lie && call.method === 'eth_call') lieOverWs(stub.lie, connection, stub, call)
      else setTimeout(() => connection.send(answerText(stub, call)), stub.delayMs)
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { port: bound } = server.address() as AddressInfo
  const stub: StubNode = {
    url: `http://127.0.0.1:${bound}/`,
    wsUrl: `ws://127.0.0.1:${bound}/`,
    chainId: 1,
    head: 100,
    lie: undefined,
    batches: 'fine',
    methods: [],
    batchSizes: [],
    delayMs: 0,
    answer: ({ params }) => ({ name, params }),
    connections: () => sockets.size,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      ws.close()
      await once(server, 'close').catch(() => {})
    },
  }
  return stub
}

const hashOf = (number: number) => `0x${number.toString(16).padStart(64, '0')}`

function resultOf(stub: StubNode, call: Call): unknown {
  const { method } = call
  if (method === 'eth_chainId') return `0x${stub.chainId.toString(16)}`
  if (method === 'eth_blockNumber') return `0x${stub.head.toString(16)}`
  if (method === 'net_version') return `${stub.chainId}`
  if (method === 'web3_clientVersion') return 'stub/1'
  if (method === 'eth_syncing') return false
  if (method === 'eth_subscribe') return '0x1'
  if (method === 'eth_getBlockByNumber')
    return {
      number: `0x${stub.head.toString(16)}`,
      hash: hashOf(stub.head),
      parentHash: hashOf(stub.head - 1),
      timestamp: '0x1',
    }
  return stub.answer(call)
}

const answerText = (stub: StubNode, call: Call): string =>
  JSON.stringify({ jsonrpc: '2.0', id: call.id, result: resultOf(stub, call) })

function reply(stub: StubNode, response: ServerResponse, body: Call | Call[]): void {
  const calls = Array.isArray(body) ? body : [body]
  stub.methods.push(...calls.map(({ method }) => method))
  if (Array.isArray(body)) stub.batchSizes.push(body.length)
  const isHit = calls.some(({ method }) => method === 'eth_call')
  if (stub.lie && isHit) lie(stub.lie, response, stub, body)
  else if (Array.isArray(body)) replyBatch(stub, response, body)
  else send(response, 200, answerText(stub, body))
}

function send(response: ServerResponse, status: number, text: string, headers = {}): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  })
  response.end(text)
}

const refusal = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches here"}}'

function replyBatch(stub: StubNode, response: ServerResponse, calls: Call[]): void {
  const answers = calls.map((call) => answerText(stub, call))
  const manner = stub.batches
  if (manner === 'refused' || (manner === 'at most 10' && calls.length > 10))
    send(response, 200, refusal)
  else if (manner === 'status 400') send(response, 400, 'Bad Request')
  else if (manner === 'reversed') send(response, 200, `[${answers.toReversed().join(' ,\n')}]`)
  else if (manner === 'lacks one') send(response, 200, `[${answers.slice(1).join()}]`)
  else if (manner === 'one twice') send(response, 200, `[${[...answers, answers[0]].join()}]`)
  else if (manner === 'as one object') send(response, 200, answers[0]!)
  else send(response, 200, `[${answers.join()}]`)
}

const large = 64 * 1024 * 1024

function lie(lie: Lie, response: ServerResponse, stub: StubNode, body: Call | Call[]): void {
  const socket = response.socket!
  const text = textLie(lie, stub, body)
  if (text !== undefined) send(response, 200, text)
  else if (lie === 'html 502')
    send(response, 502, '<html>Bad Gateway</html>', { 'content-type': 'text/html' })
  else if (lie === '429') send(response, 429, 'slow down', { 'retry-after': '1' })
  else if (lie === '429 without a time') send(response, 429, '')
  else if (lie === 'redirect') send(response, 302, '', { location: 'http://127.0.0.1:1/' })
  else if (lie === 'compressed') send(response, 200, 'x', { 'content-encoding': 'gzip' })
  else if (lie === 'not UTF-8') {
    const bad = Buffer.from('{"jsonrpc":"2.0","id":1,"result":"\xff"}', 'latin1')
    response.end(bad)
  } else if (lie === 'cut body') {
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"jsonrpc":"2.0","id":1,')
  } else if (lie === 'closes after the headers') {
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n')
  } else if (lie === 'closes at once') socket.destroy()
  else if (lie === '64 MiB') {
    response.writeHead(200, { 'content-length': large })
    response.end(Buffer.allocUnsafe(large))
  } else if (lie === '64 MiB in pieces') pour(response, large)
  else if (lie === 'trickle') trickle(response)
}

function textLie(lie: Lie, stub: StubNode, body: Call | Call[]): string | undefined {
  const calls = Array.isArray(body) ? body : [body]
  const each = (one: (call: Call) => string) => {
    const texts = calls.map(one)
    return Array.isArray(body) ? `[${texts.join()}]` : texts[0]!
  }
  const wrong = JSON.stringify('a lie')
  if (lie === 'garbage') return 'Lorem ipsum dolor sit amet'
  if (lie === 'empty') return ''
  if (lie === 'cut JSON') return each((call) => answerText(stub, call)).slice(0, -3)
  if (lie === 'damaged JSON')
    return each(({ id }) => `{"jsonrpc":"2.0","id":${id},"result":{"a":,"b":1}}`)
  if (lie === 'wrong id')
    return each(({ id }) => `{"jsonrpc":"2.0","id":${id + 1e9},"result":${wrong}}`)
  if (lie === 'id of a neighbour')
    return each(({ id }) => `{"jsonrpc":"2.0","id":${id + 1},"result":${wrong}}`)
  if (lie === 'null id') return each(() => `{"jsonrpc":"2.0","id":null,"result":${wrong}}`)
  if (lie === 'no id') return each(() => `{"jsonrpc":"2.0","result":${wrong}}`)
  if (lie === 'duplicate keys')
    return each(({ id }) => `{"jsonrpc":"2.0","id":${id},"result":1,"result":${wrong}}`)
  if (lie === 'neither result nor error') return each(({ id }) => `{"jsonrpc":"2.0","id":${id}}`)
  if (lie === 'rate limit error')
    return each(
      ({ id }) => `{"jsonrpc":"2.0","id":${id},"error":{"code":-32005,"message":"limit exceeded"}}`,
    )
  return undefined
}

function pour(response: ServerResponse, left: number): void {
  const piece = Buffer.alloc(1024 * 1024, 0x20)
  if (left <= 0 || response.destroyed) response.end()
  else if (response.write(piece)) setImmediate(pour, response, left - piece.length)
  else response.once('drain', () => pour(response, left - piece.length))
}

function trickle(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 50)
  response.on('close', () => clearInterval(timer))
}

function lieOverWs(lie: Lie, connection: WebSocket, stub: StubNode, call: Call): void {
  const text = textLie(lie, stub, call)
  if (text !== undefined) connection.send(text)
  else if (lie.startsWith('64 MiB')) connection.send(Buffer.allocUnsafe(large), { binary: false })
  else if (lie.startsWith('closes')) connection.terminate()
}
