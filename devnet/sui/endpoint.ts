import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  createServer as createHttp2,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc'
import { type Faults, noFaults } from './faults.ts'
import type { Ledger } from './ledger.ts'
import { createServices } from './services.ts'
import { StatusError } from './status.ts'

/** One address at which a ledger is served. */
export type Endpoint = {
  url: string
  port: number
  /** May be changed while it runs. */
  faults: Faults
  /** Ends every stream, as a node does every few hours. */
  closeStreams(): void
  close(): Promise<void>
}

type Request = IncomingMessage | Http2ServerRequest
// HTTP/2 has the same functions for what is used here; where it has no flushHeaders nothing is held back.
type Response = Omit<ServerResponse, 'flushHeaders'> & { flushHeaders?(): void }

const descriptors = Object.fromEntries(
  [
    GrpcTypes.LedgerService,
    GrpcTypes.StateService,
    GrpcTypes.TransactionExecutionService,
    GrpcTypes.SubscriptionService,
  ].map((service) => [service.typeName, service]),
)
const mostRequest = 4 << 20

const frame = (flag: number, body: Uint8Array): Buffer => {
  const head = Buffer.alloc(5)
  head[0] = flag
  head.writeUInt32BE(body.length, 1)
  return Buffer.concat([head, body])
}

const readBody = async (request: Request): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > mostRequest)
      throw new StatusError(GrpcStatusCode.RESOURCE_EXHAUSTED, 'request too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Serves gRPC and gRPC-web (binary and text) at one port of the loopback, as a full node does. */
export async function openEndpoint(ledger: Ledger, port = 0): Promise<Endpoint> {
  const faults = noFaults()
  const services = createServices(ledger, faults)
  const streams = new Set<AbortController>()
  const sockets = new Set<Socket>()
  let balanceRequests = 0
  /** How far behind the machine is that a load balancer sends this request to. */
  const behindOf = (method: string): number => {
    const { staleBalances } = faults
    if (staleBalances.length === 0 || !/^(Get|List)Balances?$/.test(method)) return 0
    return staleBalances[balanceRequests++ % staleBalances.length]!
  }

  const answer = async (request: Request, response: Response): Promise<void> => {
    const type = String(request.headers['content-type'] ?? '')
    const isWeb = type.startsWith('application/grpc-web')
    const isText = type.startsWith('application/grpc-web-text')
    const write = (bytes: Buffer): boolean =>
      response.write(isText ? bytes.toString('base64') : bytes)
    const ending = new AbortController()
    response.on('close', () => ending.abort())
    let status: number = GrpcStatusCode.OK
    let message = ''
    try {
      const body = await readBody(request)
      if (faults.mode === 'hanging') return
      const raw = isText ? Buffer.from(body.toString('latin1'), 'base64') : body
      const parts = (request.url ?? '').split('/')
      const name = parts.pop() ?? ''
      const service = parts.pop() ?? ''
      const newest = ledger.history.newest()
      const behind = behindOf(name)
      response.writeHead(200, {
        'content-type': isWeb ? type : 'application/grpc',
        'x-sui-chain-id': ledger.chainId,
        'x-sui-checkpoint-height': String(Math.max(0, newest.number - faults.lag - behind)),
        'x-sui-lowest-available-checkpoint': String(ledger.history.lowest()),
      })
      response.flushHeaders?.()
      if (faults.token !== undefined && request.headers['x-token'] !== faults.token)
        throw new StatusError(GrpcStatusCode.UNAUTHENTICATED, 'no such token')
      if (faults.path !== undefined && parts.join('/') !== faults.path)
        throw new StatusError(GrpcStatusCode.UNAUTHENTICATED, 'no such token')
      if (faults.status !== undefined && name !== 'GetServiceInfo')
        throw new StatusError(faults.status, 'out of order')
      const descriptor = descriptors[service]?.methods.find((method) => method.name === name)
      const method = services[service]?.[name]
      if (!descriptor || !method)
        throw new StatusError(GrpcStatusCode.UNIMPLEMENTED, `unimplemented ${service}/${name}`)
      const result = method(descriptor.I.fromBinary(raw.subarray(5)), ending.signal, behind)
      const encode = (one: unknown) =>
        frame(0, descriptor.O.toBinary(descriptor.O.create(one as object)))
      if (descriptor.serverStreaming) {
        streams.add(ending)
        for await (const one of result as AsyncIterable<object>)
          if (!write(encode(one)) && !ending.signal.aborted) await drained(response)
      } else write(encode(await result))
    } catch (error) {
      status = error instanceof StatusError ? error.code : GrpcStatusCode.INTERNAL
      message = error instanceof Error ? error.message : String(error)
    } finally {
      streams.delete(ending)
    }
    const trailers = { 'grpc-status': String(status), 'grpc-message': encodeURIComponent(message) }
    if (isWeb) {
      const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`)
      write(frame(0x80, Buffer.from(lines.join(''))))
    } else response.addTrailers(trailers)
    response.end()
  }
  const serve = (request: Request, response: ServerResponse | Http2ServerResponse) => {
    // A reader that goes away in the middle is none of our business.
    answer(request, response as Response).catch(() => response.destroy())
  }

  const http1 = createHttp1(serve)
  const http2 = createHttp2(serve)
  http2.on('sessionError', () => {})
  const server = createServer((socket) => {
    if (faults.mode === 'down') return void socket.destroy()
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.once('data', (first: Buffer) => {
      socket.pause()
      socket.unshift(first)
      const isHttp2 = first.toString('latin1', 0, 3) === 'PRI'
      ;(isHttp2 ? http2 : http1).emit('connection', socket)
      process.nextTick(() => socket.resume())
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  const { port: taken } = server.address() as AddressInfo
  const disconnect = () => {
    for (const socket of sockets) socket.destroy()
  }
  const watched = new Proxy(faults, {
    set: (target, key, value) => {
      Reflect.set(target, key, value)
      if (key === 'mode' && value !== 'up') disconnect()
      return true
    },
  })
  return {
    url: `http://127.0.0.1:${taken}`,
    port: taken,
    faults: watched,
    closeStreams: () => {
      for (const stream of streams) stream.abort()
    },
    close: async () => {
      for (const stream of streams) stream.abort()
      const closed = new Promise((resolve) => server.close(resolve))
      disconnect()
      await closed
    },
  }
}

const drained = (response: Response): Promise<void> =>
  new Promise((resolve) => {
    response.once('drain', resolve)
    response.once('close', resolve)
  })
