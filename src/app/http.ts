import { fileURLToPath } from 'node:url'
import { services } from '../contract/variant.ts'
import type { RefusalCounts } from '../domain/audit/operation.ts'
import { createEnvelopeReader } from '../gateway/rpc/envelope.ts'
import { createServe } from '../gateway/rpc/serve.ts'
import { createClientAddress, createIsProxy } from '../http/clients/client-address.ts'
import { type Cors, createCors, createIsAllowed } from '../http/clients/cors.ts'
import { createShares, type Shares } from '../http/clients/shares.ts'
import { hostNames, isTrustedHost, onTrustedHost } from '../http/clients/trusted-host.ts'
import { type DevTools, devRoutes } from '../http/dev.ts'
import { type DocumentedChain, docsRoutes } from '../http/docs/routes.ts'
import {
  createEventStreams,
  type EventStreams,
  type EventStreamsOptions,
} from '../http/events/streams.ts'
import type { Exchange, Finished } from '../http/exchange.ts'
import { createGatewayFront, type GatewayFront } from '../http/fast-path/gateway-front.ts'
import { createOperationsFront } from '../http/fast-path/operations-front.ts'
import { createGatewayLane } from '../http/gateway.ts'
import type { Operations } from '../http/operations.ts'
import { get, probeRoutes } from '../http/probes.ts'
import type { Routes } from '../http/routes.ts'
import { type HttpServer, type Route, startServer } from '../http/server.ts'
import type { SignIn } from '../http/sign-in.ts'
import { consoleRoutes } from '../http/web-console/routes.ts'
import { createSockets, type Sockets } from '../http/websocket/websocket.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { hostInUrl } from '../lib/net/host-in-url.ts'
import { isLoopback } from '../lib/net/loopback.ts'
import { recordProfile } from '../lib/profile.ts'
import type { Access } from './access.ts'
import { startAdminListener } from './admin-listener.ts'
import type { Config } from './config/schema.ts'
import { variantServices, variantsOf } from './config/sections/chains.ts'
import { follow } from './follow.ts'
import type { Own } from './lifetime.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { Networks } from './networks.ts'
import type { ReloadOutcome } from './reload/reload.ts'
import { createPublicStatus } from './status.ts'
import type { Wallets } from './wallets.ts'

/** The listeners of a running service. */
export type Listeners = {
  base_url: string
  ws_url: string
  /** Address of the operator's routes; undefined when they are off. */
  admin_url: string | undefined
  /** `/ready` answers 503 from now on, and connections are closed after their next answer. */
  drain(): void
}

/** What the listeners serve. */
export type Served = Pick<Access, 'admission' | 'authenticator' | 'keys'> & {
  clock: Clock
  ids: Ids
  log: Log
  version: string
  metrics: Metrics
  networks: Networks
  wallets: Pick<Wallets, 'problems'>
  /** The configuration that runs: a reload changes its chains, the log level and the origins. */
  current(): Config
  /** Reads the configuration again. */
  reload(): Promise<ReloadOutcome>
  operations: Operations
  /** Counts refused gateway keys. */
  audit: RefusalCounts
  routes: Routes
  /** Why requests cannot be served; undefined when they can. */
  readiness(): Promise<string | undefined>
  /** The operator's status. */
  status(): Promise<Record<string, unknown>>
  developmentRules: boolean
  /** Present where local chains run. */
  local?:
    | { tools: DevTools; examples(): Readonly<Record<string, object>>; signIn?: SignIn | undefined }
    | undefined
  onSockets(sockets: Sockets): void
  events: Pick<EventStreamsOptions, 'installation' | 'hub' | 'live' | 'networks'>
  onEvents(events: EventStreams): void
}

/** Opens the public listener with its WebSockets, then the operator's. */
export async function openHttp(config: Config, served: Served, own: Own): Promise<Listeners> {
  const { clock, ids, log, version, metrics, networks, wallets, operations, routes, local } = served
  const { admission, authenticator, keys, audit, developmentRules, status } = served
  const { current, reload } = served
  const { server, gateway } = config
  const shutdownTimeoutMs = server.shutdown_timeout_seconds * 1000
  const clientOf = createClientAddress(server.trust_proxy)
  const isProxy = createIsProxy(server.trust_proxy)
  const { connections, proxied, bodies } = openShares(config)
  metrics.watchShares({ connections, proxied, bodies })
  // Requests are logged at debug and below only: one line per call would hide all others.
  const isLogged = () => ['debug', 'trace'].includes(current().logging.level)
  const onFinished = createOnFinished(metrics, routes, { log, isLogged })
  let isDraining = false
  const notReady = async () => (isDraining ? 'The service is stopping.' : await served.readiness())

  const serve = createServe({
    read: createEnvelopeReader({ batchLimit: gateway.batch_limit }),
    admission,
    maxBatchBytes: gateway.batch_response_limit_bytes,
  })
  const front = createGatewayFront({
    networks: networks.byPath,
    keys,
    audit,
    serve,
    bodyLimitBytes: gateway.body_limit_bytes,
    clock,
    ids,
    log,
    isLogged,
  })
  const sockets = createSockets({
    networks: networks.byPath,
    streams: networks.streams,
    keys,
    audit,
    serve,
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
  metrics.watchStreams(networks.streams, sockets)

  const events = own(
    createEventStreams({
      ...{ authenticator, admission },
      ...served.events,
      isTrustedOrigin: createIsTrustedOrigin(current, developmentRules),
      limits: { perKey: server.streams_per_key, perOrganization: server.streams_per_organization },
    }),
  )
  served.onEvents(events)

  // A page of another origin can reach a service on loopback by DNS rebinding; the Host header shows it.
  const publicHosts = hostNames([`http://${hostInUrl(server.host)}`, server.base_url])
  const cors = openCors(current, front, developmentRules)
  let base_url = server.base_url ?? ''
  const http = own(
    await startServer({
      host: server.host,
      port: server.port,
      basePath: server.base_path,
      log,
      ids,
      cors,
      lane: createGatewayLane(front, clientOf, bodies),
      gateway: front,
      operations: createOperationsFront({
        ...{ operations, routes, ids, log },
        bodyLimitBytes: server.body_limit_bytes,
        onFinished,
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
        events.route,
        { path: '/v1/*', name: 'operations', handle: operations.handle },
        ...probeRoutes({
          notReady,
          // The gateway serves known keys without the database, so it stays in the load balancer longer.
          gatewayNotReady: async () =>
            keys.isServing() && !isDraining ? undefined : await notReady(),
          degraded: wallets.problems,
          status: createPublicStatus({
            ...{ current, version },
            isStopping: () => isDraining,
            problems: wallets.problems,
          }),
        }),
        ...docsRoutes(
          () => base_url,
          follow(() => current().chains, documentedChains),
          (request) =>
            (isLoopback(server.host) && isTrustedHost(request, publicHosts) && local?.examples()) ||
            {},
          server.base_path,
        ),
        ...(local && developmentRules
          ? devRoutes(local.tools, authenticator, publicHosts, local.signIn)
          : []),
        ...consoleOrDocs(config, local && developmentRules ? publicHosts : undefined),
      ],
    }),
  )
  // Owned a second time: stopped before the server as well, which waits until all connections have ended.
  own(sockets)
  own(events)
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
    admin_url: admin?.admin_url,
    drain: () => {
      isDraining = true
      http.drain()
    },
  }
}

/** The chains that the API reference describes, administration first. */
const documentedChains = (chains: Config['chains']): readonly DocumentedChain[] => [
  { chain: 'admin', services: ['admin'], networks: [] },
  ...Object.entries(chains)
    .map(([chain, settings]) => ({
      chain,
      services: variantsOf(chain, settings).map((variant) => variantServices[variant]),
      networks: Object.keys(settings.networks).filter((name) => name !== settings.default_network),
    }))
    .sort((a, b) => order.indexOf(a.services[0]!) - order.indexOf(b.services[0]!)),
]

// That of the catalogue, whatever the order of the configuration.
const order = Object.keys(services)

const baseUrlOf = ({ server }: Config, { address }: HttpServer): string =>
  `http://${hostInUrl(server.host)}:${address.port}${server.base_path}`

/** The built console, or the way to the reference where it is switched off. */
function consoleOrDocs({ server }: Config, hosts: readonly string[] | undefined): Route[] {
  const { base_path: basePath } = server
  if (!server.console)
    return [
      get('/', ({ response }) => {
        response.writeHead(302, { location: `${basePath}/docs` }).end()
      }),
    ]
  const routes = consoleRoutes({ directory: consoleDirectory, basePath })
  return hosts ? onTrustedHost(routes, hosts) : routes
}

const consoleDirectory = fileURLToPath(new URL('../../console/dist', import.meta.url))

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

/** Counts every finished exchange, and logs it where requests are logged. */
const createOnFinished =
  (
    metrics: Pick<Metrics, 'finished'>,
    routes: Routes,
    { log, isLogged }: { log: Log; isLogged(): boolean },
  ) =>
  (finished: Finished): void => {
    metrics.finished(finished)
    if (!isLogged()) return
    const { path, ...shown } = finished
    // A path outside of the operations may hold a key.
    log.debug({ ...shown, ...(routes.find(path) && { path }) }, 'request finished')
  }
