// The app wires everything: it opens the parts in the order of their dependencies and stops them in
// reverse. It may use every folder except `cli`. It guarantees that a start that fails half-way
// leaves nothing running.

import { createBulkTurns } from '../domain/bulk-turns.ts'
import type { DevTools } from '../http/dev.ts'
import type { EventStreams } from '../http/events/streams.ts'
import { createOperations, type Operations } from '../http/operations.ts'
import { createSignIn } from '../http/sign-in.ts'
import type { Sockets } from '../http/websocket/websocket.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { type Ids, systemIds } from '../lib/ids.ts'
import { type Log, silentLog } from '../lib/log.ts'
import { isLoopback } from '../lib/net/loopback.ts'
import type { DataDirLock } from '../storage/embedded/lock.ts'
import { startEventHub } from '../workers/events/hub.ts'
import { createHolders, startBackground } from './background.ts'
import type { Demo } from './bootstrap.ts'
import type { Place } from './chain-openers.ts'
import { type ChainServices, openChainServices } from './chain-services.ts'
import { listenToChanges } from './change-listener.ts'
import type { ServicePart } from './cluster/part.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { toQuotas } from './config/sections/limits.ts'
import { removeConnectionFile, writeConnectionFile } from './connection-file.ts'
import { canMasterKeysChange, type DatabaseServer, openMasterKeys } from './data-directory.ts'
import { connectedChains } from './described-chains.ts'
import { type Foundation, openFoundation } from './foundation.ts'
import { openHttp } from './http.ts'
import type { Own } from './lifetime.ts'
import type { LogHooks } from './logger.ts'
import { startMasterKeyRefresh } from './master-key-refresh.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { Networks } from './networks.ts'
import type { ProcessOverview } from './overview.ts'
import { createProcessReports, type ProcessReports } from './process-reports.ts'
import { applyChains } from './reload/apply.ts'
import { type Difference, mergeLive } from './reload/difference.ts'
import { createReloader, type ReloadOutcome } from './reload/reload.ts'
import { rereadConfig } from './reload/reread.ts'
import { createReadiness, createStatus, listUntracked } from './status.ts'
import type { Wallets } from './wallets.ts'
import { openWebhooks, type Webhooks } from './webhooks.ts'

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
  /** The embedded database, where its start was begun before. The app stops it. */
  server?: Promise<DatabaseServer> | undefined
  /** Whether other processes listen on the port as well. */
  reusePort?: boolean
  /** Adds the trace to every line of the log, and passes lines on. */
  attachLog?(hooks: LogHooks): void
  /** Ends the start while it waits for the migration of another process. */
  signal?: AbortSignal | undefined
}

/** What the embedded mode brings along. */
export type LocalChains = {
  lock: DataDirLock
  facts: Readonly<Record<string, object>>
  tools: DevTools
  /** Requests for the API reference that succeed on the demo; shown only where it listens on loopback. */
  examples(organization_id: string | undefined): Promise<Readonly<Record<string, object>>>
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
export type RunningService = Omit<App, 'views' | 'retire'>

/** What a supervisor asks of a process. */
export type AppViews = {
  metrics: Metrics['families']
  status(): Promise<Record<string, unknown>>
  callFilter: Networks['callFilter']
}

// Two checks of a load balancer, most of which check every one to two seconds.
const usualDrainSeconds = 5

/**
 * Starts every part of the service, in the order in which they need each other. Parts that are opened later, and that
 * earlier ones call, are reached through `late`.
 */
export async function startApp(options: AppOptions): Promise<App> {
  const { log, clock = systemClock, ids = systemIds, local, part } = options
  await using starting = new AsyncDisposableStack()
  const own: Own = (part) => {
    starting.defer(() => part.stop())
    return part
  }
  const foundation = await openFoundation({ ...options, clock, ids, local, part }, own)
  const { config, current, roles, dataDir, database, installation, access, demo } = foundation
  const { server, trustedTime } = database
  const { db } = installation
  const late: Late = {}

  const { courier, hub } = openNotifications(foundation, late, own)
  // One per lease and not per process: a reload replaces single networks.
  const holders = createHolders(ids)
  const chains = await openChainServices(
    foundation,
    {
      ...{ places: options.places, peers: part?.peers, sharing: part?.sharing },
      newHolder: holders.newHolder,
      onReorganized: (name, blocks) => late.events?.reorganized(name, blocks),
    },
    own,
  )
  const { networks, wallets } = chains
  late.track = wallets.join
  const { overview, live } = startBackground(
    foundation,
    {
      ...{ chains, courier, holders, places: options.places ?? [] },
      ...{ isEmbedded: local !== undefined, sockets: () => late.sockets },
    },
    own,
  )
  late.overview = overview
  late.reports = own(createProcessReports({ db, log, overview }))
  const status = createStatus({
    ...{ current, db, clock, version: options.version, networks, courier, roles: roles.list },
    ...((roles.has('tracker') || roles.has('sender')) && { wallets }),
    ...(roles.isServing && { queries: chains.queries, limiter: access.limiter }),
    lastReload: () => reloader.last(),
    connections: () => late.sockets?.connections(),
    database: server.mode,
  })
  const operations = openOperations(foundation, chains, overview)
  const reloader = createReloader({
    // Of several processes the supervisor reports it, once.
    log: part ? withoutReports(log) : log,
    ...{ current, clock, read: () => rereadConfig(options) },
    apply: createApply(foundation, { ...{ chains, operations, courier, late }, options }),
    onReloaded: ({ outcome }) => foundation.metrics.reloaded(outcome),
  })
  // A crash or a restore may have lost nonces: signed requests of before this time would be refused.
  await clock.sleep(Math.max(0, trustedTime - clock.now()))

  // On loopback only: the code alone gives the keys of the demo.
  const signIn =
    local && demo && config.server.console && isLoopback(config.server.host)
      ? createSignIn(demo, { ids, clock })
      : undefined
  const { metrics, routes, developmentRules, tracing, version } = foundation
  const listeners = await openHttp(
    config,
    {
      ...{ ...access, clock, ids, log, version, metrics, networks, wallets, operations, routes },
      ...{ audit: chains.audit, status, developmentRules, readiness: createReadiness(db) },
      ...{ current, reload: reloader.reload, roles, tracing, reusePort: options.reusePort },
      isSilent: part !== undefined && !roles.isServing && !roles.has('console'),
      local: local && {
        tools: local.tools,
        examples: () => local.examples(demo?.organization_id),
        signIn,
      },
      onSockets: (opened) => {
        late.sockets = opened
      },
      events: hub &&
        live && {
          installation: { ...installation, shareOf: database.shareOf },
          ...{ hub, live, networks: overview.streamed, usage: chains.operationUsage },
        },
      onEvents: (opened) => {
        late.events = opened
      },
    },
    own,
  )
  const { base_url, ws_url, port, admin_url } = listeners
  const sign_in_url = signIn && `${base_url}/#sign-in=${signIn.code}`
  const writeConnection = async () => {
    // The supervisor writes one for all its processes.
    if (part) return ''
    return await writeConnectionFile(dataDir, {
      pid: process.pid,
      ...{ base_url, ws_url, ...(admin_url && { admin_url }), ...(sign_in_url && { sign_in_url }) },
      ...{ ...demo, chains: connectedChains(current(), local?.facts) },
    })
  }
  late.writeConnection = writeConnection
  const connectionFile = await writeConnection()
  if (!part) starting.defer(() => removeConnectionFile(dataDir, process.pid))

  own(reloader)
  const parts = starting.move()
  let isReplaced = false
  let stopped: Promise<void> | undefined
  return {
    ...{ base_url, ws_url, port, admin_url, dataDir, connectionFile, demo },
    database: server.mode,
    views: { status, metrics: metrics.families, callFilter: networks.callFilter },
    retire: () => {
      isReplaced = true
      late.sockets?.retire()
    },
    sign_in_url,
    reload: reloader.reload,
    untracked: () => listUntracked(db, wallets.problems()),
    drain: async (signal) => {
      listeners.drain(isReplaced)
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

/** Parts that are opened after those that call them. Nothing is lost before: there is no client yet. */
type Late = {
  sockets?: Sockets
  events?: EventStreams
  reports?: ProcessReports
  overview?: ProcessOverview
  track?: Wallets['join']
  writeConnection?(): Promise<string>
}

/** Opens the couriers and the event hub, and listens to what other processes change. */
function openNotifications(foundation: Foundation, late: Late, own: Own) {
  const { config, current, env, roles, installation, tracing, dataDir } = foundation
  const { db, clock, log } = installation
  const { access, sealer } = foundation
  const courier = roles.has('courier')
    ? own(openWebhooks(current, { ...installation, tracing }))
    : undefined
  const hub = roles.has('api') ? own(startEventHub({ db, clock, log })) : undefined
  own(
    listenToChanges({
      ...{ server: foundation.database.server, log, access, courier, sealer, hub },
      forgetInSockets: (change) => {
        late.sockets?.forget(change)
        late.events?.changed(change)
        late.reports?.changed(change)
        if (change.kind === 'reorganization') late.overview?.reorganized(change.network_id)
      },
      onReconnect: () => late.events?.recheck(),
      onTrack: (at) => late.track?.(at),
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
  return { courier, hub }
}

/** The operations of the API on what the process has opened. Limits and chains are those that run. */
function openOperations(
  { config, current, routes, installation, database, access, tracing }: Foundation,
  { wallets, queries, operationUsage, audit }: ChainServices,
  overview: ProcessOverview,
): Operations {
  const { shareOf, replicas } = database
  return createOperations({
    routes,
    installation: {
      ...installation,
      shareOf,
      bulkTurns: createBulkTurns(),
      ...(replicas && { replicas }),
      limits: {
        get defaults() {
          return defaultLimits(current())
        },
        get chains() {
          return ['admin', ...Object.keys(current().chains)]
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
}

/** Makes the function that applies a configuration that was read again to what runs. */
function createApply(
  { config, running, env, roles, installation, routes, access }: Foundation,
  parts: {
    chains: ChainServices
    operations: Operations
    courier: Webhooks | undefined
    late: Late
    options: Pick<AppOptions, 'setLogLevel' | 'part'>
  },
) {
  const { db, clock, log } = installation
  const { networks, queries, wallets } = parts.chains
  const { operations, courier, late, options } = parts
  return async (next: Config, difference: Difference): Promise<void> => {
    const { isChains, settings } = difference
    const after = mergeLive(config, next)
    // Synchronous, so that no request sees half of a change.
    const commit = () => {
      running.config = after
      if (settings.includes('logging.level')) options.setLogLevel?.(after.logging.level)
      access.records.setDefaults(defaultLimits(after))
    }
    if (isChains)
      await applyChains(
        {
          ...{ db, env, clock, log, routes, networks, queries, wallets, operations },
          ...{ hasWallets: roles.hasWallets, sockets: () => late.sockets },
        },
        { before: running.config, after, difference },
        { ready: options.part?.ready, commit },
      )
    else {
      await options.part?.ready()
      commit()
    }
    if (settings.some((key) => key.startsWith('webhooks.'))) await courier?.replace()
    await late.writeConnection?.()
  }
}

/** The limits of organizations without records. */
const defaultLimits = ({ limits: { replicas: _, ...defaults } }: Config) => defaults

/** A log whose reports are details: errors stay errors. */
const withoutReports = (log: Log): Log => ({
  debug: (fields, message) => log.debug(fields, message),
  info: (fields, message) => log.debug(fields, message),
  warn: (fields, message) => log.debug(fields, message),
  error: (fields, message) => log.error(fields, message),
})
