import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { OperationError, type Reason } from '../contract/errors.ts'
import type { Ids } from '../lib/ids.ts'
import { systemIds } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { type Exchange, openExchange, send } from './exchange.ts'
import { problemResponse, toOperationError } from './problems.ts'

/** Handles an exchange whose path begins with a prefix. */
export type Route = {
  /** A whole path, or all below it when it ends with `/*`. */
  path: string
  /** Of the metrics and the access log; never the path itself, which may hold a key. */
  name: string
  handle(exchange: Exchange): Promise<void> | void
}

/** What is told of every finished exchange. */
export type Finished = { route: string; path: string; status: number; seconds: number }

/** How to build the server. */
export type ServerOptions = {
  host: string
  port: number
  routes: readonly Route[]
  log: Log
  ids?: Ids
  onFinished(finished: Finished): void
  headersTimeoutMs?: number
  requestTimeoutMs?: number
  keepAliveTimeoutMs?: number
  shutdownTimeoutMs?: number
}

/** A server that listens. */
export type HttpServer = { address: AddressInfo; stop(): Promise<void> }

/** Starts the HTTP server. It answers every failure with a problem body, its own included. */
export async function startServer(options: ServerOptions): Promise<HttpServer> {
  const { routes, log, onFinished, ids = systemIds } = options
  let stopping = false

  const findRoute = (path: string) =>
    routes.find(({ path: own }) =>
      own.endsWith('/*') ? path.startsWith(own.slice(0, -1)) : path === own,
    )

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const begun = performance.now()
    const exchange = openExchange(request, response, ids)
    const { request_id, path } = exchange
    const route = findRoute(path)
    response.once('close', () => {
      const seconds = (performance.now() - begun) / 1000
      onFinished({ route: route?.name ?? 'none', path, status: response.statusCode, seconds })
    })
    try {
      if (stopping) {
        response.setHeader('connection', 'close')
        throw new OperationError('SHUTTING_DOWN', { retryAfter: 1 })
      }
      if (!route) throw new OperationError('ROUTE_NOT_FOUND')
      await route.handle(exchange)
    } catch (error) {
      if (exchange.signal.aborted) return
      const problem = problemResponse(toOperationError(error, log, request_id), request_id)
      send(exchange, problem.status, problem.headers, problem.body)
    }
  }

  const server = createServer(
    {
      // The default looks every 30 seconds only, which would let slow clients hold on for that long.
      connectionsCheckingInterval: 1_000,
      headersTimeout: options.headersTimeoutMs ?? 10_000,
      requestTimeout: options.requestTimeoutMs ?? 30_000,
      keepAliveTimeout: options.keepAliveTimeoutMs ?? 65_000,
      maxHeaderSize: 16_384,
      insecureHTTPParser: false,
    },
    (request, response) => void serve(request, response),
  )
  server.on('clientError', answerClientError(ids))
  server.on('checkExpectation', (request, response) => void serve(request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', (error) => log.error({ err: error }, 'http server failed'))

  let stopped: Promise<void> | undefined
  const stop = async () => {
    stopping = true
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeIdleConnections()
    const timer = setTimeout(() => {
      log.warn({}, 'requests still open at the end of the shutdown time were cut off')
      server.closeAllConnections()
    }, options.shutdownTimeoutMs ?? 10_000)
    await closed
    clearTimeout(timer)
  }
  return {
    address: server.address() as AddressInfo,
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}

/** What Node's parser refuses never becomes a request; it gets the same problem body all the same. */
const answerClientError =
  (ids: Ids) =>
  (error: Error & { code?: string }, socket: Socket): void => {
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy()
      return
    }
    const reasons: Record<string, Reason> = {
      ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
      HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
    }
    const reason = reasons[error.code ?? ''] ?? 'MALFORMED_REQUEST'
    const request_id = ids.uuid()
    const { status, headers, body } = problemResponse(new OperationError(reason), request_id)
    const lines = Object.entries({
      ...headers,
      'x-request-id': request_id,
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('')}\r\n${body}`)
  }
