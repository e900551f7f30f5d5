// The app wires everything: it opens the parts in the order of their dependencies and stops them in
// reverse. It may use every folder except `cli`. It guarantees that a start that fails half-way
// leaves nothing running.

import { createOperationUsage } from '../domain/access/operation-usage.ts'
import { createAuditTrail } from '../domain/audit/trail.ts'
import type { Installation } from '../domain/context.ts'
import { createUsageWriter, type UsageWriter } from '../gateway/usage/usage.ts'
import type { DevTools } from '../http/dev.ts'
import type { EventStreams } from '../http/events/streams.ts'
import { createOperations } from '../http/operations.ts'
import { createLiveRoutes } from '../http/routes.ts'
import { createSignIn } from '../http/sign-in.ts'
import type { Sockets } from '../http/websocket/websocket.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { type Ids, systemIds } from '../lib/ids.ts'
import { type Log, silentLog } from '../lib/log.ts'
import { isLoopback } from '../lib/net/loopback.ts'
import { addMethodUsage } from '../storage/access/method-usage.ts'
import type { DataDirLock } from '../storage/embedded/lock.ts'
import { describeNetworks, listNetworks } from '../storage/tracking/networks.ts'
import { startEventHub } from '../workers/events/hub.ts'
import { startLiveEvents } from '../workers/events/live.ts'
import { startRollup } from '../workers/metrics/rollup.ts'
import { openAccess } from './access.ts'
import { checkAddresses } from './admin-listener.ts'
import { type Demo, demoWarning, ensureDemo } from './bootstrap.ts'
import { type Place, placesOf } from './chain-openers.ts'
import { listenToChanges } from './change-listener.ts'
import type { ServicePart } from './cluster/part.ts'
import { developmentWarning, hasDevelopmentRules } from './config/development.ts'
import type { Env } from './config/problem.ts'
import { resolveChains } from './config/resolve.ts'
import type { Config } from './config/schema.ts'
import { toQuotas } from './config/sections/limits.ts'
import { removeConnectionFile, writeConnectionFile } from './connection-file.ts'
import {
  canMasterKeysChange,
  openDataDir,
  openMasterKeys,
  openMasterSealer,
} from './data-directory.ts'
import { openServiceDatabase } from './database.ts'
import { connectedChains, describedNetworks, routedChains } from './described-chains.ts'
import { createHolders } from './holders.ts'
import { openHttp } from './http.ts'
import type { Own } from './lifetime.ts'
import type { LogHooks } from './logger.ts'
import { startIncidents, startMaintenance } from './maintenance.ts'
import { startMasterKeyRefresh } from './master-key-refresh.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { createTotals, withTotals } from './metrics/totals.ts'
import { type Networks, openNetworks } from './networks.ts'
import { createOverview } from './overview.ts'
import { noQueries, openQueries } from './query.ts'
import { applyChains } from './reload/apply.ts'
import { type Difference, mergeLive } from './reload/difference.ts'
import { createReloader, type ReloadOutcome } from './reload/reload.ts'
import { rereadConfig } from './reload/reread.ts'
import { rolesOf } from './roles.ts'
import { createReadiness, createStatus, listUntracked } from './status.ts'
import { startTelemetry } from './telemetry/start.ts'
import { openWallets, type Wallets } from './wallets.ts'
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
  /** Reads the configuration again as it was read for the start; a reload is refused without it. */
  reread?(): Config
  /** Sets the least severe level of the log. */
  setLogLevel?(level: Config['logging']['level']): void
  /** Present in one of several processes that a supervisor started. */
  part?: ServicePart
  /** Whether other processes listen on the port as well. */
  reusePort?: boolean
  /** Adds the trace to every line of the log, and passes lines on. */
  attachLog?(hooks: LogHooks): void
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
  /** Reads the configuration again and changes what differs. */
  reload(): Promise<ReloadOutcome>
  /** The networks that are not tracked, and why. */
  untracked(): Promise<string[]>
  /** The port that it listens on. */
  port: number
  /** What the operator sees of this process. */
  views: AppViews
  /** Another process takes its place: WebSocket clients are asked to connect again when it stops. */
  retire(): void
  /** Is not ready any more, but serves on until load balancers have noticed. */
  drain(signal?: AbortSignal): Promise<void>
  stop(): Promise<void>
}

/** A running service, of one process or of several. */
export type Service = Omit<App, 'views' | 'retire'>

/** What a supervisor asks of a process. */
export type AppViews = {
  metrics: Metrics['families']
  status(): Promise<Record<string, unknown>>
  callFilter: Networks['callFilter']
}

// Two checks of a load balancer, most of which check every one to two seconds.
const usualDrainSeconds = 5

/** Starts every part of the service, in the order in which they need each other. */
export async function startApp(options: AppOptions): Promise<App> {
  const { env, cwd, log, version, clock = systemClock, ids = systemIds, local, part } = options
  const config = resolveChains(options.config, env)
  const roles = rolesOf(config.server.roles)
  let running = config
  const current = () => running
  await using starting = new AsyncDisposableStack()
  const own: Own = (part) => {
    starting.defer(() => part.stop())
    return part
  }

  const dataDir = await openDataDir(config, env, cwd)
  if (!part) await checkAddresses(config)
  const tracing = await startTelemetry(config, options, own)
  const sealer = await openMasterSealer(config, { dataDir, env, log })
  const lock = local?.lock
  const given = part?.server
  const tools = { dataDir, env, log, clock, lock, given, tracing }
  const database = await openServiceDatabase(config, tools, own)
  const { db, pool, shareOf, workersDb, server, nonceMemory, trustedTime, replicas } = database
  const developmentRules = hasDevelopmentRules(config, local !== undefined)
  const endpoints = endpointRules(current, developmentRules)
  const installation = { db, clock, ids, sealer, log, endpoints } satisfies Installation
  await describeNetworks(db, describedNetworks(config))
  const routes = createLiveRoutes(routedChains(config, await listNetworks(db)))
  const totals = createTotals()
  const metrics = withTotals(createMetrics(version, routes), totals)
  const { authenticationFailed: onFailure } = metrics
  const access = await openAccess(
    config,
    installation,
    { env, pool, nonceMemory, onFailure, isServing: roles.isServing, limiter: part?.limiter },
    own,
  )
  const demo = developmentRules ? await ensureDemo(installation) : undefined
  for (const message of [
    developmentWarning(config, local !== undefined),
    developmentRules ? undefined : await demoWarning(db),
  ])
    if (message !== undefined) log.warn({}, message)

  const courier = roles.has('courier')
    ? own(openWebhooks(current, { ...installation, tracing }))
    : undefined
  let sockets: Sockets | undefined
  let events: EventStreams | undefined
  const hub = roles.has('api') ? own(startEventHub({ db, clock, log })) : undefined
  const forgetInSockets: Sockets['forget'] = (change) => sockets?.forget(change)
  let joinTracking: Wallets['join'] = () => {}
  own(
    listenToChanges({
      ...{ server, log, access, courier, sealer, hub },
      forgetInSockets: (change) => {
        forgetInSockets(change)
        events?.changed(change)
      },
      onReconnect: () => events?.recheck(),
      onTrack: (at) => joinTracking(at),
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
    openNetworks(config, {
      ...{ env, log, clock, ids, tracing, peers: part?.peers },
      spill: (counts) => usage.add(counts),
      onReorganized: (name, blocks) => events?.reorganized(name, blocks),
    }),
  )
  const { newHolder, isOwn } = createHolders(ids)
  const queries = roles.isServing
    ? own(await openQueries(config, { db, clock, log, networks }))
    : noQueries
  const configured = options.places ?? placesOf(config, { env, clock, log, networks })
  const places = roles.hasWallets ? configured : []
  const wallets = own(
    await openWallets(config, places, {
      ...{ db: workersDb, clock, log, newHolder, endpoints, roles, tracing },
    }),
  )
  joinTracking = wallets.join
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
  const { isBackground } = roles
  startMaintenance(config, { ...installation, database, access, newHolder, isBackground }, own)

  const overview = createOverview({
    ...{ current, places: options.places ?? [], networks, wallets, sockets: () => sockets },
    isEmbedded: local !== undefined,
  })
  const { nodes, lags, streamed } = overview
  const live = roles.has('api') ? own(startLiveEvents({ db, clock, log, nodes })) : undefined
  const limits = () => running.limits
  startIncidents({ ...installation, db: workersDb, nodes, limits, newHolder, isBackground }, own)
  own(
    startRollup({
      ...{ db, clock, log, holder: ids.uuid() },
      lags: roles.has('tracker') ? lags : () => [],
      totals: () => totals.read({ networks: networks.byPath.values(), courier: courier?.status() }),
    }),
  )

  metrics.watchPools({ requests: pool, workers: database.workersPool })
  metrics.watchInstallation({ db, dataDir, isOwn })
  if (courier) metrics.watchCourier(courier)
  if (roles.has('tracker')) metrics.watchTrackers(wallets)
  if (roles.isServing) {
    metrics.watchLimiter(access.limiter.status)
    metrics.watchPending(queries.status)
    metrics.watchNetworks(() => networks.byPath.values())
  }
  metrics.watchUpstreams(nodes)
  const status = createStatus({
    ...{ current, db, clock, version, networks, courier, roles: roles.list },
    ...((roles.has('tracker') || roles.has('sender')) && { wallets }),
    ...(roles.isServing && { queries, limiter: access.limiter }),
    lastReload: () => reloader.last(),
    connections: () => sockets?.connections(),
    database: server.mode,
  })
  const operations = createOperations({
    routes,
    installation: {
      ...installation,
      shareOf,
      ...(replicas && { replicas }),
      limits: {
        get defaults() {
          return defaultLimits(running)
        },
        get chains() {
          return ['admin', ...Object.keys(running.chains)]
        },
      },
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
    tracing,
    timeoutMs: config.server.operation_timeout_seconds * 1000,
  })
  const apply = async (next: Config, difference: Difference): Promise<void> => {
    const { isChains, settings } = difference
    const after = mergeLive(config, next)
    const commit = () => {
      running = after
      if (settings.includes('logging.level')) options.setLogLevel?.(after.logging.level)
      access.records.setDefaults(defaultLimits(after))
    }
    const { hasWallets } = roles
    const parts = {
      db,
      env,
      clock,
      log,
      routes,
      networks,
      queries,
      wallets,
      operations,
      hasWallets,
    }
    if (isChains)
      await applyChains(
        { ...parts, sockets: () => sockets },
        { before: running, after, difference },
        commit,
      )
    else commit()
    if (settings.some((key) => key.startsWith('webhooks.'))) await courier?.replace()
    await writeConnection()
  }
  const reloader = createReloader({
    ...{ current, apply, clock, log, read: () => rereadConfig(options) },
    onReloaded: ({ outcome }) => metrics.reloaded(outcome),
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
      ...{ current, reload: reloader.reload, roles, tracing, reusePort: options.reusePort },
      isSilent: part !== undefined && !roles.isServing && !roles.has('console'),
      local: local && {
        tools: local.tools,
        examples: () => local.examples(demo?.organization_id),
        signIn,
      },
      onSockets: (opened) => {
        sockets = opened
      },
      events: hub &&
        live && {
          installation: { ...installation, shareOf },
          ...{ hub, live, networks: streamed, usage: operationUsage },
        },
      onEvents: (opened) => {
        events = opened
      },
    },
    own,
  )
  const { base_url, ws_url, port, admin_url, drain } = listeners
  const sign_in_url = signIn && `${base_url}/#sign-in=${signIn.code}`
  const writeConnection = async () => {
    // The supervisor writes one for all its processes.
    if (part) return ''
    const chains = connectedChains(running, local?.facts)
    return await writeConnectionFile(dataDir, {
      pid: process.pid,
      ...{ base_url, ws_url, ...(admin_url && { admin_url }), ...(sign_in_url && { sign_in_url }) },
      ...{ ...demo, chains },
    })
  }
  const connectionFile = await writeConnection()
  if (!part) starting.defer(() => removeConnectionFile(dataDir, process.pid))

  own(reloader)
  const parts = starting.move()
  let stopped: Promise<void> | undefined
  return {
    ...{ base_url, ws_url, port, admin_url, dataDir, connectionFile, demo },
    database: server.mode,
    views: { status, metrics: metrics.families, callFilter: networks.callFilter },
    retire: () => sockets?.retire(),
    sign_in_url,
    reload: reloader.reload,
    untracked: () => listUntracked(db, wallets.problems()),
    drain: async (signal) => {
      drain()
      const { drain_seconds, shutdown_timeout_seconds } = config.server
      const seconds = drain_seconds ?? (developmentRules ? 0 : usualDrainSeconds)
      const ms = Math.min(seconds, shutdown_timeout_seconds) * 1000
      if (ms > 0) await clock.sleep(ms, signal).catch(() => {})
    },
    stop: () => {
      stopped ??= parts.disposeAsync()
      return stopped
    },
  }
}

/** The limits of organizations without records. */
const defaultLimits = ({ limits: { replicas: _, ...defaults } }: Config) => defaults
