import { type Service, services } from '../contract/variant.ts'
import { createAdmission } from '../domain/access/admit.ts'
import { createAuthenticator } from '../domain/access/authenticate.ts'
import { checkMasterKey } from '../domain/access/check-master-key.ts'
import { createGatewayKeys } from '../domain/access/gateway-keys.ts'
import { createKeyForms, loadKeyMac } from '../domain/access/key-mac.ts'
import { createLimitRecords } from '../domain/access/limit-records.ts'
import { createNonceSpender } from '../domain/access/nonce-spender.ts'
import { createOperationUsage } from '../domain/access/operation-usage.ts'
import { createAuditTrail } from '../domain/audit/trail.ts'
import type { Installation } from '../domain/context.ts'
import { createLimiter } from '../domain/limits/limiter.ts'
import { createUsageStore } from '../domain/limits/stored-usage.ts'
import { createEnvelopeReader } from '../gateway/rpc/envelope.ts'
import { createServe } from '../gateway/rpc/serve.ts'
import { createUsageWriter, type UsageWriter } from '../gateway/usage/usage.ts'
import { createClientAddress, createIsProxy } from '../http/clients/client-address.ts'
import { hostNames, isTrustedHost } from '../http/clients/trusted-host.ts'
import { type DevTools, devRoutes } from '../http/dev.ts'
import { docsRoutes } from '../http/docs/routes.ts'
import { createGatewayFront } from '../http/fast-path/gateway-front.ts'
import { createOperationsFront } from '../http/fast-path/operations-front.ts'
import { createGatewayLane } from '../http/gateway.ts'
import { createOperations } from '../http/operations.ts'
import { probeRoutes } from '../http/probes.ts'
import { startServer } from '../http/server.ts'
import { createSockets, type Sockets } from '../http/websocket/websocket.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { type Ids, systemIds } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { hostInUrl } from '../lib/net/host-in-url.ts'
import { isLoopback } from '../lib/net/loopback.ts'
import { tryListen } from '../lib/net/try-listen.ts'
import { recordProfile } from '../lib/profile.ts'
import { addMethodUsage } from '../storage/access/method-usage.ts'
import { createNonceMemory } from '../storage/access/nonce-memory.ts'
import type { DataDirLock } from '../storage/embedded/lock.ts'
import { migrateDatabase } from '../storage/migrations/migrate.ts'
import { listenForChanges } from '../storage/pg/changes.ts'
import { openDatabase } from '../storage/pg/database.ts'
import { ensurePartitions } from '../storage/pg/partitions.ts'
import { checkServerVersion } from '../storage/pg/server-version.ts'
import { courierTopic } from '../storage/webhooks/notifications.ts'
import { startAuditChain } from '../workers/janitor/audit-chain.ts'
import { startJanitor } from '../workers/janitor/janitor.ts'
import { startOrganizationErasing } from '../workers/janitor/organization-erasing.ts'
import { createOnFinished } from './access-log.ts'
import { adminListenFault, startAdminListener } from './admin-listener.ts'
import { type Demo, demoWarning, ensureDemo } from './bootstrap.ts'
import { developmentWarning, hasDevelopmentRules } from './config/development.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { toQuotas } from './config/sections/quotas.ts'
import { removeConnectionFile, writeConnectionFile } from './connection-file.ts'
import { openCors } from './cross-origin.ts'
import { openDataDir, openMasterSealer, openServer } from './data-directory.ts'
import { createMetrics } from './metrics/metrics.ts'
import { openNetworks } from './networks.ts'
import { openQuery } from './query.ts'
import { openRedis } from './redis.ts'
import { openFailureBudget, openShares } from './shares.ts'
import { createPublicStatus, createReadiness, createStatus } from './status.ts'
import { type Openers, openWallets } from './wallets.ts'
import { endpointRules, openWebhooks } from './webhooks.ts'

/** What a service is started with. */
export type AppOptions = {
  config: Config
  env: Env
  cwd: string
  log: Log
  version: string
  clock?: Clock
  ids?: Ids
  /** Other chains than those of the configuration. */
  openers?: Openers
  /** The local chains, where they run. */
  local?: LocalChains
}

/** What the embedded mode brings along. */
export type LocalChains = {
  lock: DataDirLock
  facts: Readonly<Record<string, object>>
  tools: DevTools
  /** Requests for the API reference that succeed on the demo; shown only where it listens on loopback. */
  examples(organization_id: string | undefined): Readonly<Record<string, object>>
}

/** A running service. */
export type App = {
  base_url: string
  ws_url: string
  /** Where the operator's routes are; undefined when they are off. */
  admin_url: string | undefined
  dataDir: string
  connectionFile: string
  database: 'embedded' | 'server'
  demo: Demo | undefined
  /** Is not ready any more, but serves on until load balancers have noticed. */
  drain(signal?: AbortSignal): Promise<void>
  stop(): Promise<void>
}

// Two looks of a load balancer, most of which look every one to two seconds.
const usualDrainSeconds = 5

/** Starts every part of the service, in the order in which they need each other. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, env, cwd, log, version, clock = systemClock, ids = systemIds } = options
  const { openers, local } = options
  // What was started is stopped in reverse, whether the service ends or a later step fails.
  await using starting = new AsyncDisposableStack()
  const own = <thing extends { stop(): Promise<void> }>(thing: thing): thing => {
    starting.defer(() => thing.stop())
    return thing
  }

  const dataDir = await openDataDir(config, env, cwd)
  // A start that cannot serve must not migrate the database of those that do.
  const taken =
    (config.database.url && (await tryListen(config.server.host, config.server.port))) ||
    (await adminListenFault(config))
  if (taken) throw taken
  const sealer = await openMasterSealer(config, { dataDir, env, log })
  const server = own(await openServer(config, { dataDir, env, log, lock: local?.lock }))
  // What a killed service left would send scripts to a port that nobody listens on.
  await removeConnectionFile(dataDir)
  const { pool_size, worker_pool_size, statement_timeout_seconds } = config.database
  const connect = (max: number) =>
    openDatabase({
      connection: server.connection,
      log,
      max,
      statementTimeoutMs: statement_timeout_seconds * 1000,
    })
  const { db, pool } = own(connect(pool_size))
  const workers = own(connect(worker_pool_size))
  await checkServerVersion(db)
  await migrateDatabase(db, { log })
  // Requests signed from now on are not refused for a crash or a restore before the start.
  const nonceMemory = createNonceMemory(db)
  const untrustedMs = await nonceMemory.begin()
  const trustedTime = clock.now() + untrustedMs
  await ensurePartitions(db, new Date(clock.now()))

  const developmentRules = hasDevelopmentRules(config, local !== undefined)
  const endpoints = endpointRules(config, developmentRules)
  const installation = { db, clock, ids, sealer, log, endpoints } satisfies Installation
  // Noticed now and not at the first signed request, which it would make fail.
  await checkMasterKey(installation)
  const mac = await loadKeyMac(installation)
  const forms = createKeyForms({ db, clock, log, mac })
  await forms.refresh()
  const demo = developmentRules ? await ensureDemo(installation) : undefined
  for (const message of [
    developmentWarning(config, local !== undefined),
    developmentRules ? undefined : await demoWarning(db),
  ])
    if (message !== undefined) log.warn({}, message)

  const redis = await openRedis(config, { env, log })
  if (redis) own(redis)
  const { replicas, ...defaults } = config.limits
  const limiter = own(
    createLimiter({
      clock,
      log,
      store: createUsageStore(db),
      replicas,
      ...(redis && { redis: redis.limitScript }),
    }),
  )
  const records = createLimitRecords({ db, clock }, { defaults })
  const metrics = createMetrics(version)
  const onFailure = metrics.authenticationFailed
  const failures = openFailureBudget(config, { clock, log, onFailure })
  const keys = createGatewayKeys({ db, clock, failures }, { forms })
  const authenticator = createAuthenticator(installation, {
    nonceWindowMs: config.security.nonce_window_seconds * 1000,
    nonces: createNonceSpender({ db, pool }, { memory: nonceMemory }),
    failures,
    forms,
  })
  let sockets: Sockets | undefined
  const courier = own(openWebhooks(config, installation))
  own(
    listenForChanges({
      connection: server.connection,
      log,
      onChange: (change) => {
        keys.forget(change)
        authenticator.forget(change)
        sockets?.forget(change)
        if (change.kind === 'wake' && change.topic === courierTopic) courier.wake()
        if (change.kind === 'rate_limit') records.forget(change.organization_id)
      },
      onReconnect: () => {
        records.forget()
        keys.connected()
        // What was queued while nobody listened.
        courier.wake()
      },
      onLost: keys.disconnected,
    }),
  )
  const networks = own(
    openNetworks(config, { env, log, clock, ids, spill: (counts) => usage.add(counts) }),
  )
  const query = own(await openQuery(config, { db, clock, log, networks }))
  const wallets = own(
    await openWallets(config, {
      db: workers.db,
      env,
      clock,
      log,
      ids,
      networks,
      endpoints,
      openers,
    }),
  )
  const operationUsage = createOperationUsage((counts) => usage.add(counts))
  const usage: UsageWriter = own(
    createUsageWriter({
      clock,
      log,
      store: (rows) => addMethodUsage(db, rows),
      collect: () => [...networks.takeUsage(), ...operationUsage.take()],
    }),
  )
  const audit = own(createAuditTrail({ db, clock, ids, log }))
  own(
    startAuditChain({
      ...{ db: workers.db, clock, ids, log, sealer, holder: ids.uuid() },
      keepMs: config.audit.retention_days * 86_400_000,
    }),
  )
  own(startOrganizationErasing({ db: workers.db, clock, log, holder: ids.uuid() }))
  const takeUsedCredentials = () => [...authenticator.takeUsed(), ...keys.takeUsed()]
  const keepNonces = () => nonceMemory.keep()
  own(startJanitor({ db, clock, log, takeUsedCredentials, keepNonces }))

  metrics.watchPool(pool)
  metrics.watchLimiter(limiter.status)
  metrics.watchCourier(courier.status)
  metrics.watchTrackers(wallets.status)
  if (query.status) metrics.watchPending(query.status)
  metrics.watchNetworks(networks.byPath.values().toArray())
  const readiness = createReadiness(db)
  let isDraining = false
  const notReady = async () => (isDraining ? 'The service is stopping.' : await readiness())
  const status = createStatus({
    config,
    db,
    limiter,
    networks,
    connections: () => sockets?.connections(),
    wallets,
    query,
    courier,
    clock,
    version,
    database: server.mode,
  })
  let base_url = config.server.base_url ?? ''
  const admission = createAdmission(records, limiter, { replicas })
  const operations = createOperations({
    installation: {
      ...installation,
      limits: { defaults, chains: ['admin', ...Object.keys(config.chains)] },
      quotas: toQuotas(config.quotas),
      chains: wallets.chains,
      ...(query.source && { query: query.source }),
    },
    authenticator,
    admission,
    bodyLimitBytes: config.server.body_limit_bytes,
    usage: operationUsage,
    audit,
    timeoutMs: config.server.operation_timeout_seconds * 1000,
  })
  const { batch_limit, batch_response_limit_bytes, body_limit_bytes } = config.gateway
  const serve = createServe({
    read: createEnvelopeReader({ batchLimit: batch_limit }),
    admission,
    maxBatchBytes: batch_response_limit_bytes,
  })
  const shutdownTimeoutMs = config.server.shutdown_timeout_seconds * 1000
  const clientOf = createClientAddress(config.server.trust_proxy)
  const isProxy = createIsProxy(config.server.trust_proxy)
  const { connections, proxied, bodies } = openShares(config)
  metrics.watchShares({ connections, proxied, bodies })
  const isLogged = config.logging.level === 'debug' || config.logging.level === 'trace'
  const onFinished = createOnFinished(metrics, isLogged ? log : undefined)
  const front = createGatewayFront({
    networks: networks.byPath,
    keys,
    serve,
    bodyLimitBytes: body_limit_bytes,
    clock,
    ids,
    log,
    isLogged,
  })
  const opened = createSockets({
    networks: networks.byPath,
    streams: networks.streams,
    keys,
    serve,
    clock,
    ids,
    log,
    clientOf,
    shares: { connections: proxied, isProxy },
    connectionsPerKey: config.gateway.connections_per_key,
    maxMessageBytes: body_limit_bytes,
    shutdownTimeoutMs,
    limits: { maxBytes: config.gateway.notifications_limit_bytes },
  })
  sockets = own(opened)
  const publicHosts = hostNames([`http://${hostInUrl(config.server.host)}`, config.server.base_url])
  const cors = openCors(config, front, developmentRules)
  metrics.watchStreams(networks.streams, opened)
  await clock.sleep(Math.max(0, trustedTime - clock.now()))
  const http = own(
    await startServer({
      host: config.server.host,
      port: config.server.port,
      log,
      ids,
      ...(cors && { cors }),
      lane: createGatewayLane(front, clientOf, bodies),
      gateway: front,
      operations: createOperationsFront({
        ...{ operations, ids, log },
        bodyLimitBytes: config.server.body_limit_bytes,
        onFinished,
      }),
      upgrade: opened.upgrade,
      onFinished,
      clientOf,
      shares: { connections, isProxy },
      bodies,
      headersTimeoutMs: config.server.header_timeout_seconds * 1000,
      requestTimeoutMs: config.server.request_timeout_seconds * 1000,
      keepAliveTimeoutMs: config.server.keep_alive_timeout_seconds * 1000,
      shutdownTimeoutMs,
      routes: [
        { path: '/v1/*', name: 'operations', handle: operations.handle },
        ...probeRoutes({
          notReady,
          gatewayNotReady: async () =>
            keys.isServing() && !isDraining ? undefined : await notReady(),
          degraded: wallets.problems,
          status: createPublicStatus({
            ...{ config, version },
            isStopping: () => isDraining,
            problems: wallets.problems,
          }),
        }),
        ...docsRoutes(
          () => base_url,
          (service) => service === 'admin' || Object.hasOwn(config.chains, service),
          (request) =>
            (isLoopback(config.server.host) &&
              isTrustedHost(request, publicHosts) &&
              local?.examples(demo?.organization_id)) ||
            {},
        ),
        ...(local && developmentRules ? devRoutes(local.tools, authenticator, publicHosts) : []),
      ],
    }),
  )
  // Before the server, which waits for all connections to end.
  own(opened)
  base_url ||= `http://${hostInUrl(config.server.host)}:${http.address.port}`
  const ws_url = config.server.ws_url ?? base_url.replace(/^http/, 'ws')
  const chains = Object.fromEntries(
    Object.entries(config.chains).map(([tag, { kind, default_network }]) => [
      tag,
      {
        network: default_network,
        variant: services[tag as Service],
        kind,
        ...local?.facts[tag],
      },
    ]),
  )
  const admin = await startAdminListener(
    config,
    { status, metrics: metrics.text, profile: recordProfile },
    { log, ids, onFinished, shutdownTimeoutMs },
  )
  if (admin) own(admin)
  const admin_url = admin?.admin_url
  const content = { base_url, ws_url, ...(admin_url && { admin_url }), ...demo, chains }
  const connectionFile = await writeConnectionFile(dataDir, content)
  starting.defer(() => removeConnectionFile(dataDir))

  const running = starting.move()
  let stopped: Promise<void> | undefined
  return {
    base_url,
    ws_url,
    admin_url,
    dataDir,
    connectionFile,
    database: server.mode,
    demo,
    drain: async (signal) => {
      isDraining = true
      http.drain()
      const { shutdown_timeout_seconds } = config.server
      const seconds = config.server.drain_seconds ?? (developmentRules ? 0 : usualDrainSeconds)
      const ms = Math.min(seconds, shutdown_timeout_seconds) * 1000
      if (ms > 0) await clock.sleep(ms, signal).catch(() => {})
    },
    stop: () => {
      stopped ??= running.disposeAsync()
      return stopped
    },
  }
}
