// The HTTP server. It owns sockets, time limits and the end of connections, and passes requests to
// routes. It uses `domain` and `gateway`. It guarantees one answer per request and bounded memory
// per client address.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { OperationError } from '../contract/errors/errors.ts'
import type { Ids } from '../lib/ids.ts'
import { systemIds } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Outage } from '../lib/outage.ts'
import { createTurns } from '../lib/turns.ts'
import { createWithin, type Within } from './base-path.ts'
import { type ClientAddress, createClientAddress } from './clients/client-address.ts'
import { createOpenAnswers, refuse } from './clients/client-errors.ts'
import { type ConnectionShares, limitConnections } from './clients/connection-limits.ts'
import type { Cors } from './clients/cors.ts'
import type { Shares } from './clients/shares.ts'
import type { Finished } from './exchange.ts'
import { type Exchange, hungUp, openExchange, send } from './exchange.ts'
import { type BareSockets, createBareSockets } from './fast-path/bare-sockets.ts'
import type { GatewayFront } from './fast-path/gateway-front.ts'
import type { OperationsFront } from './fast-path/operations-front.ts'
import { headFault } from './fast-path/request-target.ts'
import { problemResponse, toOperationError } from './problems.ts'
import { createRequestTurns } from './request-turns.ts'

const probePaths = /^\/(?:health|ready|ready\/[a-z]+)(?:\?|$)/
const isProbe = (target: string): boolean => probePaths.test(target)

/** Handles an exchange whose path begins with a prefix. */
export type Route = {
  /** A whole path, or all below it when it ends with `/*`. */
  path: string
  /** Of the metrics and the access log; never the path itself, which may hold a key. */
  name: string
  /** Further conditions of the route; the next one is tried where they do not hold. */
  matches?(requested: { path: string; request: IncomingMessage }): boolean
  handle(exchange: Exchange): Promise<void> | void
}

/** Takes a request past the general path; false when it is none of its own. */
export type DirectHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  isStopping: () => boolean,
  /** What is wrong with the head of the request, if anything. */
  fault: string | undefined,
) => boolean

/** How to build the server. */
export type ServerOptions = {
  host: string
  port: number
  /** Whether other processes listen on the port as well; the system shares connections among them. */
  reusePort?: boolean
  routes: readonly Route[]
  /** All routes are below it; empty for the root. */
  basePath?: string
  /** Asked first of all. */
  cors?: Cors
  /** Asked before the routes. */
  direct?: DirectHandler
  /** Answers plain requests of the gateway on the bare socket. */
  gateway?: GatewayFront
  /** And plain requests for operations. */
  operations?: OperationsFront
  /** Takes the requests for a WebSocket. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer): void
  log: Log
  ids?: Ids
  /** Where requests come from; without it no proxy is trusted. */
  clientOf?: ClientAddress
  /** How many connections there may be; without it any number. */
  shares?: ConnectionShares
  /** The room that bodies have in memory. */
  bodies?: Shares
  onFinished(finished: Finished): void
  /** Called for requests that failed because the database was unreachable. */
  database?: Pick<Outage, 'failed'>
  headersTimeoutMs?: number
  requestTimeoutMs?: number
  keepAliveTimeoutMs?: number
  shutdownTimeoutMs?: number
}

/** A server that listens. */
export type HttpServer = {
  address: AddressInfo
  /** Continues serving, but every answer is the last one of its connection. */
  drain(): void
  stop(): Promise<void>
}

// How long connections stay open for requests on the wire when the port is closed after draining.
const lingerMs = 500
const backlogMs = 100

/** Starts the HTTP server. It answers every failure with a problem body, its own included. */
export async function startServer(options: ServerOptions): Promise<HttpServer> {
  const {
    routes,
    log,
    onFinished,
    ids = systemIds,
    clientOf = createClientAddress(false),
  } = options
  let stopping = false
  let drainingSince: number | undefined

  const within = createWithin(options.basePath ?? '')

  const findRoute = (path: string, request: IncomingMessage) =>
    routes.find(
      ({ path: own, matches }) =>
        (own.endsWith('/*') ? path.startsWith(own.slice(0, -1)) : path === own) &&
        (!matches || matches({ path, request })),
    )

  /** Takes the base path off the URL and returns the target as sent; undefined where it is not below the base path. */
  const enter = (request: IncomingMessage): string | undefined => {
    const target = request.url ?? '/'
    // Load balancers ask the probes without it.
    const inner = within(target) ?? (isProbe(target) ? target : undefined)
    if (inner === undefined) return undefined
    request.url = inner
    return target
  }

  const isStopping = () => stopping
  const open = createOpenAnswers()
  const underWay = new Set<ServerResponse>()
  const take = (request: IncomingMessage, response: ServerResponse) => {
    // Node then says `connection: close`.
    if (drainingSince !== undefined) response.shouldKeepAlive = false
    const fault = headFault(request)
    const target = enter(request)
    if (target === undefined) return void serve(request, response, { fault, target })
    if (!fault && options.cors?.(request, response)) return
    if (!options.direct?.(request, response, isStopping, fault))
      void serve(request, response, { fault, target })
  }

  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    { fault, target }: { fault: string | undefined; target: string | undefined },
  ) => {
    const begun = performance.now()
    const forwardedFor = request.headers['x-forwarded-for'] as string | undefined
    const client = clientOf(request.socket.remoteAddress, forwardedFor)
    const exchange = openExchange(request, response, ids, client, options.bodies, target)
    const { request_id, path } = exchange
    const route = target === undefined ? undefined : findRoute(path, request)
    underWay.add(response)
    response.once('close', () => {
      underWay.delete(response)
      if (stopping) server.closeIdleConnections()
      const seconds = (performance.now() - begun) / 1000
      const status = response.headersSent ? response.statusCode : hungUp
      const { facts } = exchange
      onFinished({ route: route?.name ?? 'none', path, status, seconds, request_id, client, facts })
    })
    try {
      if (stopping) {
        response.setHeader('connection', 'close')
        throw new OperationError('SHUTTING_DOWN', { retryAfter: 1 })
      }
      if (fault !== undefined) {
        response.setHeader('connection', 'close')
        throw new OperationError('MALFORMED_REQUEST', { detail: fault })
      }
      if (!route) throw new OperationError('ROUTE_NOT_FOUND')
      await route.handle(exchange)
    } catch (error) {
      if (exchange.signal.aborted) return
      const { facts } = exchange
      const { trace_id } = facts
      const failure = toOperationError(
        error,
        log,
        { request_id, client, trace_id },
        options.database,
      )
      facts.reason = failure.reason
      const problem = problemResponse(failure, request_id, trace_id)
      send(exchange, problem.status, problem.headers, problem.body)
    }
  }

  const takeInTurn = createRequestTurns(take)
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    open.add(request, response)
    takeInTurn(request, response)
  }
  const server = createServer(
    {
      // The default looks every 30 seconds only, which would let slow clients hold on for that long. Node makes an error
      // with a stack for each connection that it finds, in one turn (24 ms for 4,096), so it looks often.
      connectionsCheckingInterval: 100,
      headersTimeout: options.headersTimeoutMs ?? 10_000,
      requestTimeout: options.requestTimeoutMs ?? 30_000,
      keepAliveTimeout: options.keepAliveTimeoutMs ?? 65_000,
      maxHeaderSize: 16_384,
      insecureHTTPParser: false,
      // Node would refuse without a problem body.
      requireHostHeader: false,
      // Other protocols that a client offers are no reason not to answer it.
      shouldUpgradeCallback: ({ headers, httpVersion }) =>
        options.upgrade !== undefined &&
        headers.upgrade?.toLowerCase() === 'websocket' &&
        // One of HTTP/1.0 does not count (RFC 9110, 7.8).
        httpVersion === '1.1',
    },
    onRequest,
  )
  if (options.upgrade)
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      // Outside of the base path no address is one of a WebSocket.
      if (headFault(request) === undefined && enter(request) === undefined) request.url = '/'
      options.upgrade?.(request, socket, head)
    })
  const turns = createTurns()
  server.on('clientError', (error: Error & { code?: string }, duplex) => {
    const socket = duplex as Socket
    const act = () => open.afterAnswers(socket, () => refuse(error, socket, ids))
    // Thousands of connections may run out of time at once.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
      turns.run(clientOf(socket.remoteAddress, undefined), act)
    else act()
  })
  server.on('checkExpectation', onRequest)
  // `100 Continue` is sent when the body is wanted.
  server.on('checkContinue', onRequest)
  const sockets =
    options.gateway &&
    takeConnections(server, { front: options.gateway, ...options, within, clientOf })
  if (options.shares) limitConnections(server, options.shares, { clientOf, ids, turns })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    const { port, host, reusePort } = options
    server.listen({ port, host, ...(reusePort && { reusePort }) }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', (error) => log.error({ err: error }, 'http server failed'))

  let stopped: Promise<void> | undefined
  const stop = async () => {
    if (drainingSince !== undefined) await emptyBacklog(server)
    // Node's own way would end idle connections as well.
    const closed = new Promise<void>((resolve) => {
      NetServer.prototype.close.call(server, () => resolve())
    })
    // On connections that were opened a moment ago requests are still on their way.
    if (drainingSince !== undefined) await Promise.race([closed, delay(lingerMs)])
    stopping = true
    // Kept alive, the connections would delay the stop for as long as it is allowed to take.
    for (const response of underWay)
      if (!response.headersSent) response.setHeader('connection', 'close')
    sockets?.close()
    // The port is closed already; this ends idle connections.
    server.close()
    // The time for draining is part of it.
    const drainedMs = drainingSince === undefined ? 0 : performance.now() - drainingSince
    const longestMs = Math.max(0, (options.shutdownTimeoutMs ?? 10_000) - drainedMs)
    const timer = setTimeout(() => {
      log.warn({}, 'open requests aborted at the end of the shutdown time')
      sockets?.destroy()
      server.closeAllConnections()
    }, longestMs)
    await closed
    clearTimeout(timer)
  }
  return {
    address: server.address() as AddressInfo,
    drain: () => {
      drainingSince ??= performance.now()
      sockets?.drain()
      for (const response of underWay) response.shouldKeepAlive = false
    },
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}

/**
 * Takes the connections that wait in the kernel, and lets no new ones wait: with the port they would be
 * reset, and with them requests that a proxy has sent already. A client whose SYN is dropped here sends
 * it again, is refused then, and has sent nothing. Node has no public way to shorten the backlog.
 */
async function emptyBacklog(server: Server): Promise<void> {
  const { _handle } = server as { _handle?: { listen?(backlog: number): number } }
  _handle?.listen?.(0)
  await delay(backlogMs)
  // Right after connections were taken.
  await new Promise(setImmediate)
}

/** Puts the bare sockets before the listener with which Node's server takes its connections. */
function takeConnections(
  server: Server,
  {
    front,
    operations,
    within,
    clientOf,
  }: {
    front: GatewayFront
    operations?: OperationsFront
    within: Within
    clientOf: ClientAddress
  },
): BareSockets {
  const [listener] = server.listeners('connection')
  const sockets = createBareSockets({
    front,
    operations,
    within,
    clientOf,
    handOver: (socket) => listener?.call(server, socket),
    keepAliveTimeoutMs: server.keepAliveTimeout,
  })
  server.removeAllListeners('connection')
  server.on('connection', sockets.accept)
  return sockets
}
