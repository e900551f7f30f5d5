// Wires the listeners. The fast path and the server of Node share one set of bounds on connections and bodies, so that a
// client has one share whichever way it comes. WebSockets of clients behind a trusted proxy have a set of their own,
// because their connections are those of the proxy.

import type { RefusalCounts } from '../domain/audit/operation.ts'
import type { Network } from '../gateway/network.ts'
import { createEnvelopeReader } from '../gateway/rpc/envelope.ts'
import { createServe } from '../gateway/rpc/serve.ts'
import { type AccessShares, createAccessLog } from '../http/access-log.ts'
import { createClientAddress, createIsProxy } from '../http/clients/client-address.ts'
import { type Cors, createCors, createIsAllowed } from '../http/clients/cors.ts'
import { createShares, type Shares } from '../http/clients/shares.ts'
import {
  createEventStreams,
  type EventStreams,
  type EventStreamsOptions,
} from '../http/events/streams.ts'
import type { Exchange, Finished } from '../http/exchange.ts'
import { createGatewayFront, type GatewayFront } from '../http/fast-path/gateway-front.ts'
import { createOperationsFront } from '../http/fast-path/operations-front.ts'
import { createGatewayHandler } from '../http/gateway.ts'
import type { Routes } from '../http/routes.ts'
import { type HttpServer, startServer } from '../http/server.ts'
import { createSockets, type Sockets } from '../http/websocket/websocket.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { hostInUrl } from '../lib/net/host-in-url.ts'
import { createOutage } from '../lib/outage.ts'
import { recordProfile } from '../lib/profile.ts'
import type { Tracing } from '../lib/tracing.ts'
import { isDatabaseUnavailable } from '../storage/pg/errors.ts'
import type { Access } from './access.ts'
import { startAdminListener } from './admin-listener.ts'
import type { Config } from './config/schema.ts'
import { follow } from './follow.ts'
import type { Own } from './lifetime.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { Networks } from './networks.ts'
import { type PublicParts, publicRoutes } from './public-routes.ts'
import type { ReloadOutcome } from './reload/reload.ts'

/** The listeners of a running service. */
export type Listeners = {
  base_url: string
  ws_url: string
  port: number
  /** Address of the operator's routes; undefined when they are off. */
  admin_url: string | undefined
  /** `/ready` answers 503 from now on, and connections are closed after their next answer. */
  drain(isReplaced?: boolean): void
}

/** What the listeners serve. */
export type Served = PublicParts &
  Pick<Access, 'admission'> & {
    clock: Clock
    ids: Ids
    log: Log
    metrics: Metrics
    networks: Networks
    /** Reads the configuration again. */
    reload(): Promise<ReloadOutcome>
    /** Whether nothing is served: a supervisor answers for this process. */
    isSilent: boolean
    /** Whether other processes listen on the port as well. */
    reusePort?: boolean | undefined
    /** Counts refused gateway keys. */
    audit: RefusalCounts
    routes: Routes
    /** Why requests cannot be served; undefined when they can. */
    readiness(): Promise<string | undefined>
    /** The operator's status. */
    status(): Promise<Record<string, unknown>>
    tracing?: Tracing | undefined
    onSockets(sockets: Sockets): void
    /** Absent without the role `api`. */
    events:
      | Pick<EventStreamsOptions, 'installation' | 'hub' | 'live' | 'networks' | 'usage'>
      | undefined
    onEvents(events: EventStreams): void
  }

/** Opens the public listener with its WebSockets, then the operator's. */
export async function openHttp(config: Config, served: Served, own: Own): Promise<Listeners> {
  const { clock, ids, log, metrics, networks, operations, routes } = served
  const { admission, authenticator, keys, audit, developmentRules, status } = served
  const { current, reload, roles, tracing } = served
  const { server, gateway } = config
  if (served.isSilent)
    return { base_url: '', ws_url: '', port: 0, admin_url: undefined, drain() {} }
  const shutdownTimeoutMs = server.shutdown_timeout_seconds * 1000
  // Behind a trusted proxy the client is who the proxy names; shares and limits must count that
  // one.
  const clientOf = createClientAddress(server.trust_proxy)
  const isProxy = createIsProxy(server.trust_proxy)
  const { connections, proxied, bodies } = openShares(config)
  metrics.watchShares({ connections, proxied, bodies })
  const access = createAccessLog({
    ...{ log, routes },
    shares: follow(
      () => current().logging,
      (logging) => accessShares(logging, developmentRules),
    ),
  })
  const database = createOutage({
    ...{ log, now: clock.now },
    begins: 'database unavailable',
    ends: 'database available again',
    isPlain: isDatabaseUnavailable,
  })
  const onFinished = (finished: Finished) => {
    metrics.finished(finished)
    if (finished.route === 'operations' && finished.status === 200) database.recovered()
    access.finished(finished)
  }
  let isDraining = false
  // Another process serves on the same port: the service as a whole stays ready.
  let isTakenOver = false
  const notReady = async () =>
    isDraining && !isTakenOver ? 'The service is stopping.' : await served.readiness()

  const serve = createServe({
    read: createEnvelopeReader({ batchLimit: gateway.batch_limit }),
    admission,
    maxBatchBytes: gateway.batch_response_limit_bytes,
  })
  // A process without the role answers with a reason instead of "not found", so that a misrouted
  // client is noticed.
  const hasGateway = roles.has('gateway')
  const gatewayNetworks = hasGateway ? networks.byPath : new Map<string, Network>()
  const notFound = hasGateway ? 'NETWORK_NOT_FOUND' : 'ROLE_NOT_SERVED'
  const front = createGatewayFront({
    networks: gatewayNetworks,
    notFound,
    keys,
    audit,
    serve,
    admission,
    bodyLimitBytes: gateway.body_limit_bytes,
    clock,
    ids,
    log,
    access,
    tracing,
  })
  const sockets = createSockets({
    networks: gatewayNetworks,
    notFound,
    streams: networks.streams,
    keys,
    audit,
    serve,
    access,
    clock,
    ids,
    log,
    clientOf,
    shares: { connections: proxied, isProxy },
    connectionsPerKey: gateway.connections_per_key,
    maxMessageBytes: gateway.body_limit_bytes,
    shutdownTimeoutMs,
    limits: { maxBytes: gateway.notifications_limit_bytes },
  })
  own(sockets)
  served.onSockets(sockets)
  if (hasGateway) metrics.watchStreams(networks.streams, sockets)

  const events =
    served.events &&
    own(
      createEventStreams({
        ...{ authenticator, admission, audit },
        ...served.events,
        isTrustedOrigin: createIsTrustedOrigin(current, developmentRules),
        limits: {
          perKey: server.streams_per_key,
          perOrganization: server.streams_per_organization,
        },
      }),
    )
  if (events) served.onEvents(events)

  const cors = openCors(current, front, developmentRules)
  let base_url = server.base_url ?? ''
  const http = own(
    await startServer({
      host: server.host,
      port: server.port,
      ...(served.reusePort && { reusePort: true }),
      basePath: server.base_path,
      ...{ log, ids, cors, database },
      direct: createGatewayHandler(front, clientOf, bodies),
      gateway: front,
      ...(roles.has('api') && {
        operations: createOperationsFront({
          ...{ operations, routes, ids, log, database },
          bodyLimitBytes: server.body_limit_bytes,
          onFinished,
        }),
      }),
      upgrade: sockets.upgrade,
      onFinished,
      clientOf,
      shares: { connections, isProxy },
      bodies,
      headersTimeoutMs: server.header_timeout_seconds * 1000,
      requestTimeoutMs: server.request_timeout_seconds * 1000,
      keepAliveTimeoutMs: server.keep_alive_timeout_seconds * 1000,
      shutdownTimeoutMs,
      routes: [
        ...(events ? [events.route] : []),
        ...publicRoutes(config, served, {
          notReady,
          isStopping: () => isDraining,
          baseUrl: () => base_url,
        }),
      ],
    }),
  )
  // Owned a second time: stopped before the server as well, which waits until all connections have ended.
  own(sockets)
  if (events) own(events)
  // With port 0 the address is known only now.
  base_url ||= baseUrlOf(config, http)
  const admin = await startAdminListener(
    config,
    { status, metrics: metrics.text, profile: recordProfile, reload },
    { log, ids, onFinished, shutdownTimeoutMs },
  )
  if (admin) own(admin)
  return {
    base_url,
    ws_url: server.ws_url ?? base_url.replace(/^http/, 'ws'),
    port: http.address.port,
    admin_url: admin?.admin_url,
    drain: (isReplaced = false) => {
      isDraining = true
      isTakenOver = isReplaced
      http.drain()
    },
  }
}

const baseUrlOf = ({ server }: Config, { address }: HttpServer): string =>
  `http://${hostInUrl(server.host)}:${address.port}${server.base_path}`

/** The bounds of connections and of bodies in memory. */
function openShares({ server, gateway }: Config): {
  connections: Shares
  /** WebSockets of clients behind proxies; the client's own connection is not visible. */
  proxied: Shares
  bodies: Shares
} {
  const { connections_per_address: perClient, connections_limit: all } = server
  // One body of the largest size always fits.
  const largest = Math.max(server.body_limit_bytes, gateway.body_limit_bytes)
  return {
    connections: createShares({ perClient, all }),
    proxied: createShares({ perClient, all }),
    bodies: createShares({
      perClient: Math.max(largest, server.body_bytes_per_address),
      all: Math.max(largest, server.body_bytes_limit),
    }),
  }
}

/** Pages of the service itself and of allowed origins may open streams; programs send no origin. */
function createIsTrustedOrigin(current: () => Config, developmentRules: boolean) {
  const { base_url } = current().server
  const own = base_url === undefined ? [] : [new URL(base_url).origin]
  const isAllowedNow = follow(
    () => originsOf(current(), developmentRules),
    (origins) => createIsAllowed([...origins, ...own]),
  )
  return ({ request }: Exchange): boolean => {
    const { origin, host } = request.headers
    return (
      origin === undefined || origin.replace(/^https?:\/\//, '') === host || isAllowedNow()(origin)
    )
  }
}

const originsOf = ({ server }: Config, developmentRules: boolean): readonly string[] =>
  server.cors_origins ?? (developmentRules ? localPages : noPages)

const localPages = ['http://localhost:*', 'http://127.0.0.1:*']
const noPages: readonly string[] = []

/** The pages that may call the operations and the gateway. */
function openCors(current: () => Config, front: GatewayFront, developmentRules: boolean): Cors {
  const isOpen = (url: string) => url.startsWith('/v1/') || front.find(url, '') !== undefined
  const corsNow = follow(
    () => originsOf(current(), developmentRules),
    (origins) => (origins.length === 0 ? undefined : createCors({ origins, isOpen })),
  )
  return (request, response) => corsNow()?.(request, response) ?? false
}

/** The requests that get a line. Lines are of level info: where that is not written, no work is done for them. */
function accessShares(
  { level, operation_share, gateway_share }: Config['logging'],
  developmentRules: boolean,
): AccessShares {
  if (level === 'debug' || level === 'trace') return { operations: 1, gateway: 1 }
  if (level !== 'info') return { operations: 0, gateway: 0 }
  return { operations: operation_share ?? (developmentRules ? 0 : 1), gateway: gateway_share }
}
