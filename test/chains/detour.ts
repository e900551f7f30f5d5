import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import {
  createServer as createHttp2Server,
  type Http2Server,
  type ServerHttp2Stream,
} from 'node:http2'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'

/** An address in front of a node. The server behind it can be replaced while clients are connected. */
export type Detour = {
  port: number
  /** Ends all connections; new ones go to this port. */
  lead(port: number): void
  stop(): Promise<void>
}

/** A JSON call as both JSON-RPC and toncenter send it. */
export type JsonCall = { id: unknown; method: string; params: unknown }

/** Starts a relay of bytes, for every protocol over TCP. */
export async function startDetour(port: number): Promise<Detour> {
  let target = port
  const sockets = new Set<Socket>()
  const server = createTcpServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  const disconnect = () => {
    for (const socket of sockets) socket.destroy()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    lead: (to) => {
      target = to
      disconnect()
    },
    stop: async () => {
      const closed = once(server, 'close')
      server.close()
      disconnect()
      await closed
    },
  }
}

/** A server that answers every request in the same way; gives its port. */
export const startAnswering = async (listener: RequestListener) => {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** A server that refuses every request with 429, and every WebSocket with it. */
export const startRateLimiter = (retryAfterSeconds?: number) =>
  startAnswering((_, response) => {
    if (retryAfterSeconds !== undefined) response.setHeader('retry-after', retryAfterSeconds)
    response.writeHead(429).end('{}')
  })

/** A gRPC server that answers every call with RESOURCE_EXHAUSTED and `retry-after`. */
export async function startGrpcRateLimiter(retryAfterSeconds: number) {
  const server: Http2Server = createHttp2Server()
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {})
    stream.respond(
      {
        ':status': 200,
        'content-type': 'application/grpc',
        'grpc-status': '8',
        'grpc-message': 'too many requests',
        'retry-after': String(retryAfterSeconds),
      },
      { endStream: true },
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

/**
 * A server in front of a node that answers some JSON calls itself. `answer` gives the whole response of a
 * call; undefined forwards the call.
 */
export const startJsonFilter = (
  port: number,
  answer: (
    call: JsonCall,
    forward: (call: JsonCall) => Promise<unknown>,
  ) => Promise<unknown | undefined>,
) =>
  startAnswering(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const send = async (body: string | undefined) =>
      await fetch(`http://127.0.0.1:${port}${request.url}`, {
        method: request.method ?? 'POST',
        headers: { 'content-type': 'application/json' },
        ...(body !== undefined && { body }),
      })
    const forward = async (call: JsonCall) =>
      await (await send(JSON.stringify({ jsonrpc: '2.0', ...call }))).json()
    try {
      const text = Buffer.concat(chunks).toString()
      const calls = (text === '' ? undefined : JSON.parse(text)) as
        | JsonCall
        | JsonCall[]
        | undefined
      const one = async (call: JsonCall) => (await answer(call, forward)) ?? (await forward(call))
      const reply = !calls
        ? await (await send(undefined)).text()
        : JSON.stringify(
            Array.isArray(calls) ? await Promise.all(calls.map(one)) : await one(calls),
          )
      response.writeHead(200, { 'content-type': 'application/json' }).end(reply)
    } catch {
      response.destroy()
    }
  })
