// The app wires everything: it opens the parts in the order of their dependencies and stops them in
// reverse. It may use every folder except `cli`. It guarantees that a start that fails half-way
// leaves nothing running.

/*
 * Starts and stops the service. It reads the configuration, opens every part in the order in which the parts
 * need each other, and stops them in reverse order, also when a start fails half-way. It may use every layer
 * below; only `cli` uses it.
 */
import { createOperationUsage } from '../domain/access/operation-usage.ts'
import { createAuditTrail } from '../domain/audit/trail.ts'
import type { Installation } from '../domain/context.ts'
import { createUsageWriter, type UsageWriter } from '../gateway/usage/usage.ts'
import type { DevTools } from '../http/dev.ts'
import type { EventStreams } from '../http/events/streams.ts'
import { createOperations } from '../http/operations.ts'
import { createRoutes, type RoutedChain } from '../http/routes.ts'
import { createSignIn } from '../http/sign-in.ts'
import type { Sockets } from '../http/websocket/websocket.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { type Ids, systemIds } from '../lib/ids.ts'
import { type Log, silentLog } from '../lib/log.ts'
import { isLoopback } from '../lib/net/loopback.ts'
import { tryListen } from '../lib/net/try-listen.ts'
import { createKeyHolder } from '../storage/access/key-holders.ts'
import { addMethodUsage } from '../storage/access/method-usage.ts'
import type { Sealer } from '../storage/access/seal.ts'
import type { DataDirLock } from '../storage/embedded/lock.ts'
import { listenForChanges } from '../storage/pg/changes.ts'
import { courierTopic } from '../storage/webhooks/notifications.ts'
import { type EventHub, startEventHub } from '../workers/events/hub.ts'
import { startLiveEvents } from '../workers/events/live.ts'
import { startAuditChain } from '../workers/janitor/audit-chain.ts'
import { startJanitor } from '../workers/janitor/janitor.ts'
import { startOrganizationErasing } from '../workers/janitor/organization-erasing.ts'
import { startRollup } from '../workers/metrics/rollup.ts'
import type { Courier } from '../workers/webhooks/courier.ts'
import { type Access, openAccess } from './access.ts'
import { adminListenFault } from './admin-listener.ts'
import { type Demo, demoWarning, ensureDemo } from './bootstrap.ts'
import { type Place, placesOf } from './chain-openers.ts'
import { developmentWarning, hasDevelopmentRules } from './config/development.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { variantServices, variantsOf } from './config/sections/chains.ts'
import { toQuotas } from './config/sections/quotas.ts'
import { removeConnectionFile, writeConnectionFile } from './connection-file.ts'
import {
  canMasterKeysChange,
  openDataDir,
  openMasterKeys,
  openMasterSealer,
} from './data-directory.ts'
import { openServiceDatabase, type ServiceDatabase } from './database.ts'
import { openHttp } from './http.ts'
import type { Own } from './lifetime.ts'
import { startMasterKeyRefresh } from './master-key-refresh.ts'
import { createMetrics } from './metrics/metrics.ts'
import { createTotals, withTotals } from './metrics/totals.ts'
import { openNetworks } from './networks.ts'
import { createOverview } from './overview.ts'
import { openQueries } from './query.ts'
import { createReadiness, createStatus } from './status.ts'
import { openWallets } from './wallets.ts'
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
  /** Where wallets are tracked, in place of the chains of the configuration. */
  places?: readonly Place[]
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
  /** The one-time link into the console; undefined where there is none. */
  sign_in_url: string | undefined
  dataDir: string
  connectionFile: string
  database: 'embedded' | 'server'
  demo: Demo | undefined
  /** Is not ready any more, but serves on until load balancers have noticed. */
  drain(signal?: AbortSignal): Promise<void>
  stop(): Promise<void>
}

// Two checks of a load balancer, most of which check every one to two seconds.
const usualDrainSeconds = 5

/** Starts every part of the service, in the order in which they need each other. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, env, cwd, log, version, clock = systemClock, ids = systemIds } = options
  const { local } = options
  await using starting = new AsyncDisposableStack()
  const own: Own = (part) => {
    starting.defer(() => part.stop())
    return part
  }

  const dataDir = await openDataDir(config, env, cwd)
  await checkAddresses(config)
  const sealer = await openMasterSealer(config, { dataDir, env, log })
  const lock = local?.lock
  const database = await openServiceDatabase(config, { dataDir, env, log, clock, lock }, own)
  const { db, pool, shareOf, workersDb, server, nonceMemory, trustedTime } = database
  const developmentRules = hasDevelopmentRules(config, local !== undefined)
  const endpoints = endpointRules(config, developmentRules)
  const installation = { db, clock, ids, sealer, log, endpoints } satisfies Installation
  const routes = createRoutes(routedChains(config))
  const totals = createTotals()
  const metrics = withTotals(createMetrics(version, routes), totals)
  const { authenticationFailed: onFailure } = metrics
  const access = await openAccess(config, installation, { env, pool, nonceMemory, onFailure }, own)
  const demo = developmentRules ? await ensureDemo(installation) : undefined
  for (const message of [
    developmentWarning(config, local !== undefined),
    developmentRules ? undefined : await demoWarning(db),
  ])
    if (message !== undefined) log.warn({}, message)

  const courier = own(openWebhooks(config, installation))
  let sockets: Sockets | undefined
  let events: EventStreams | undefined
  const hub = own(startEventHub({ db, clock, log }))
  const forgetInSockets: Sockets['forget'] = (change) => sockets?.forget(change)
  own(
    listenToChanges({
      ...{ server, log, access, courier, sealer, hub },
      forgetInSockets: (change) => {
        forgetInSockets(change)
        events?.forget(change)
      },
      onReconnect: () => events?.recheck(),
    }),
  )
  if (canMasterKeysChange(config))
    own(
      startMasterKeyRefresh({
        ...{ ring: sealer, clock, log },
        read: () => openMasterKeys(config, { dataDir, env, log: silentLog }),
        intervalMs: config.security.master_key_refresh_seconds * 1000,
      }),
    )
  const networks = own(
    openNetworks(config, { env, log, clock, ids, spill: (counts) => usage.add(counts) }),
  )
  const queries = own(await openQueries(config, { db, clock, log, networks }))
  const places = options.places ?? placesOf(config, { env, clock, log, networks })
  const wallets = own(
    await openWallets(config, places, { db: workersDb, clock, log, ids, endpoints }),
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
  startMaintenance(config, { ...installation, database, access }, own)

  const overview = createOverview({
    ...{ config, places, networks, wallets, sockets: () => sockets },
    isEmbedded: local !== undefined,
  })
  const { nodes, lags, streamed } = overview
  const live = own(startLiveEvents({ db, clock, log, nodes }))
  own(
    startRollup({
      ...{ db, clock, log, lags, holder: ids.uuid() },
      totals: () => totals.read({ networks: networks.byPath.values(), courier: courier.status() }),
    }),
  )

  metrics.watchPool(pool)
  metrics.watchLimiter(access.limiter.status)
  metrics.watchCourier(courier.status)
  metrics.watchTrackers(wallets.status)
  metrics.watchPending(queries.status)
  metrics.watchNetworks(networks.byPath.values().toArray())
  metrics.watchUpstreams(nodes)
  const status = createStatus({
    ...{ config, db, clock, version, networks, wallets, queries, courier },
    limiter: access.limiter,
    connections: () => sockets?.connections(),
    database: server.mode,
  })
  const { replicas: _, ...defaults } = config.limits
  const operations = createOperations({
    routes,
    installation: {
      ...installation,
      shareOf,
      limits: { defaults, chains: ['admin', ...Object.keys(config.chains)] },
      quotas: toQuotas(config.quotas),
      chains: wallets.chains,
      queries,
      overview,
    },
    authenticator: access.authenticator,
    admission: access.admission,
    bodyLimitBytes: config.server.body_limit_bytes,
    usage: operationUsage,
    audit,
    timeoutMs: config.server.operation_timeout_seconds * 1000,
  })
  await clock.sleep(Math.max(0, trustedTime - clock.now()))
  // On loopback only: the code alone gives the keys of the demo.
  const signIn =
    local && demo && config.server.console && isLoopback(config.server.host)
      ? createSignIn(demo, { ids, clock })
      : undefined
  const listeners = await openHttp(
    config,
    {
      ...{ ...access, clock, ids, log, version, metrics, networks, wallets, operations, routes },
      ...{ audit, status, developmentRules, readiness: createReadiness(db) },
      local: local && {
        tools: local.tools,
        examples: () => local.examples(demo?.organization_id),
        signIn,
      },
      onSockets: (opened) => {
        sockets = opened
      },
      events: {
        installation: { ...installation, shareOf },
        ...{ hub, live },
        networks: streamed,
      },
      onEvents: (opened) => {
        events = opened
      },
    },
    own,
  )
  const { base_url, ws_url, admin_url, drain } = listeners
  const chains = Object.fromEntries(
    Object.entries(config.chains).map(([name, settings]) => [
      name,
      {
        network: settings.default_network,
        networks: Object.keys(settings.networks),
        variant: variantsOf(name, settings).join(''),
        kind: settings.kind,
        ...local?.facts[name],
      },
    ]),
  )
  const content = { base_url, ws_url, ...(admin_url && { admin_url }), ...demo, chains }
  const connectionFile = await writeConnectionFile(dataDir, content)
  starting.defer(() => removeConnectionFile(dataDir))

  const running = starting.move()
  let stopped: Promise<void> | undefined
  return {
    ...{ base_url, ws_url, admin_url, dataDir, connectionFile, database: server.mode, demo },
    sign_in_url: signIn && `${base_url}/#sign-in=${signIn.code}`,
    drain: async (signal) => {
      drain()
      const { drain_seconds, shutdown_timeout_seconds } = config.server
      const seconds = drain_seconds ?? (developmentRules ? 0 : usualDrainSeconds)
      const ms = Math.min(seconds, shutdown_timeout_seconds) * 1000
      if (ms > 0) await clock.sleep(ms, signal).catch(() => {})
    },
    stop: () => {
      stopped ??= running.disposeAsync()
      return stopped
    },
  }
}

/** The chains of a configuration as addresses name them. */
const routedChains = (config: Config): Record<string, RoutedChain> =>
  Object.fromEntries(
    Object.entries(config.chains).map(([name, settings]) => [
      name,
      {
        services: variantsOf(name, settings).map((variant) => variantServices[variant]),
        networks: Object.keys(settings.networks),
        default_network: settings.default_network,
      },
    ]),
  )

/** Fails before the database is migrated: a start that cannot listen must not change what others use. */
async function checkAddresses(config: Config): Promise<void> {
  const { host, port } = config.server
  const fault =
    (config.database.url && (await tryListen(host, port))) || (await adminListenFault(config))
  if (fault) throw fault
}

/** Passes on the changes that other processes announce. */
function listenToChanges(parts: {
  server: ServiceDatabase['server']
  log: Log
  access: Pick<Access, 'authenticator' | 'keys' | 'records'>
  courier: Pick<Courier, 'wake'>
  sealer: Pick<Sealer, 'key_ids'>
  hub: Pick<EventHub, 'wake'>
  forgetInSockets: Sockets['forget']
  onReconnect(): void
}) {
  const { server, log, access, courier, sealer, hub, forgetInSockets } = parts
  const { authenticator, keys, records } = access
  return listenForChanges({
    connection: server.connection,
    log,
    onChange: (change) => {
      keys.forget(change)
      authenticator.forget(change)
      forgetInSockets(change)
      if (change.kind === 'wake' && change.topic === courierTopic) {
        courier.wake()
        hub.wake()
      }
      if (change.kind === 'rate_limit') records.forget(change.organization_id)
    },
    onReconnect: () => {
      records.forget()
      keys.connected()
      // Notifications queued while the connection was lost were not announced.
      courier.wake()
      hub.wake()
      parts.onReconnect()
    },
    onLost: keys.disconnected,
    // `portolan master-key rotate` waits until every service opens with the new key.
    onSession: createKeyHolder(() => sealer.key_ids),
  })
}

/** Starts the audit chain, the erasing of organizations and the janitor. */
function startMaintenance(
  config: Config,
  parts: Installation & { database: ServiceDatabase; access: Access },
  own: Own,
): void {
  const { clock, ids, log, sealer, database, access } = parts
  const { db, workersDb, nonceMemory } = database
  own(
    startAuditChain({
      ...{ db: workersDb, clock, ids, log, sealer, holder: ids.uuid() },
      keepMs: config.audit.retention_days * 86_400_000,
    }),
  )
  own(startOrganizationErasing({ db: workersDb, clock, log, holder: ids.uuid() }))
  own(
    startJanitor({
      ...{ db, clock, log },
      takeUsedCredentials: () => [...access.authenticator.takeUsed(), ...access.keys.takeUsed()],
      keepNonces: () => nonceMemory.keep(),
    }),
  )
}
