import { once } from 'node:events'
import { Agent, createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** What happens to what goes through. */
export const proxyFaults = [
  'garbage',
  'html',
  '429',
  'cut',
  'large',
  'other chain',
  'resets',
  'trickle',
  'silence',
  'wrong id',
  'damaged',
  'unknown error',
] as const

/** One of them. */
export type ProxyFault = (typeof proxyFaults)[number]

/** A way to a node on which things can go wrong. */
export type FaultProxy = {
  url: string
  /** Lets something go wrong from now on, or no more. */
  set(fault: ProxyFault | undefined): void
  stop(): Promise<void>
}

type Call = { id: number; method: string }

/** Forwards to a node, as long as nothing is to go wrong. */
export async function startFaultProxy(port: number): Promise<FaultProxy> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const sockets = new Set<Socket>()
  let fault: ProxyFault | undefined
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const body = Buffer.concat(chunks)
      if (fault) fail(fault, response, body)
      else forward(response, body)
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })

  const forward = (response: ServerResponse, body: Buffer): void => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const outgoing = request(
      { agent, host: '127.0.0.1', port, method: 'POST', headers },
      (answer) => {
        const { 'content-length': length } = answer.headers
        response.writeHead(answer.statusCode ?? 502, {
          'content-type': 'application/json',
          ...(length !== undefined && { 'content-length': length }),
        })
        answer.on('error', () => response.destroy())
        answer.pipe(response)
      },
    )
    outgoing.on('error', () => response.socket?.destroy())
    response.on('close', () => outgoing.destroy())
    outgoing.end(body)
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${address.port}`,
    set: (next) => {
      // Another node stands there only after the connections to the first have ended.
      if (next === 'other chain' || fault === 'other chain')
        for (const socket of sockets) socket.destroy()
      fault = next
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      agent.destroy()
      server.close()
    },
  }
}

function fail(fault: ProxyFault, response: ServerResponse, body: Buffer): void {
  const end = (status: number, text: string, headers = {}) => {
    response.writeHead(status, { 'content-length': Buffer.byteLength(text), ...headers })
    response.end(text)
  }
  if (fault === 'garbage') end(200, '\u0001 not JSON')
  else if (fault === 'html') end(502, '<html><h1>502 Bad Gateway</h1></html>')
  else if (fault === '429') end(429, '{}', { 'retry-after': '1' })
  else if (fault === 'resets') response.socket?.destroy()
  else if (fault === 'large') {
    response.writeHead(200, { 'content-length': 64 * 1024 * 1024 })
    response.end(Buffer.allocUnsafe(64 * 1024 * 1024))
  } else if (fault === 'cut')
    response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n[{"jsonrpc":"2.0","id":')
  else if (fault === 'trickle') {
    response.writeHead(200)
    const timer = setInterval(() => response.write(' '), 100)
    response.on('close', () => clearInterval(timer))
  } else if (fault !== 'silence') end(200, falsehood(fault, JSON.parse(body.toString())))
}

function falsehood(fault: ProxyFault, body: Call | Call[]): string {
  const one = ({ id, method }: Call): string => {
    if (fault === 'wrong id') return `{"jsonrpc":"2.0","id":${id + 1e12},"result":"0xbad"}`
    // In words that no client is known for.
    if (fault === 'unknown error')
      return `{"jsonrpc":"2.0","id":${id},"error":{"code":${id % 2 ? -32603 : -32000},"message":"disk error 0x5"}}`
    if (fault === 'damaged') return `{"jsonrpc":"2.0","id":${id},"result":{"hash":"0xbad",}}`
    const result = method === 'eth_chainId' ? '"0x5"' : '"0xbad"'
    return `{"jsonrpc":"2.0","id":${id},"result":${result}}`
  }
  return Array.isArray(body) ? `[${body.map(one).join()}]` : one(body)
}
