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
import { tryListen } from '../lib/net/try-listen.ts'
import { createKeyHolder } from '../storage/access/key-holders.ts'
import { addMethodUsage } from '../storage/access/method-usage.ts'
import type { Sealer } from '../storage/access/seal.ts'
import type { DataDirLock } from '../storage/embedded/lock.ts'
import { listenForChanges } from '../storage/pg/changes.ts'
import { describeNetworks, listNetworks } from '../storage/tracking/networks.ts'
import { courierTopic } from '../storage/webhooks/notifications.ts'
import { type EventHub, startEventHub } from '../workers/events/hub.ts'
import { startLiveEvents } from '../workers/events/live.ts'
import { startRollup } from '../workers/metrics/rollup.ts'
import type { Courier } from '../workers/webhooks/courier.ts'
import { type Access, openAccess } from './access.ts'
import { adminListenFault } from './admin-listener.ts'
import { type Demo, demoWarning, ensureDemo } from './bootstrap.ts'
import { type Place, placesOf } from './chain-openers.ts'
import { developmentWarning, hasDevelopmentRules } from './config/development.ts'
import { checkSecrets } from './config/load.ts'
import { ConfigError, type Env } from './config/problem.ts'
import { resolveChains } from './config/resolve.ts'
import type { Config } from './config/schema.ts'
import { toQuotas } from './config/sections/quotas.ts'
import { removeConnectionFile, writeConnectionFile } from './connection-file.ts'
import {
  canMasterKeysChange,
  openDataDir,
  openMasterKeys,
  openMasterSealer,
} from './data-directory.ts'
import { openServiceDatabase, type ServiceDatabase } from './database.ts'
import { connectedChains, describedNetworks, routedChains } from './described-chains.ts'
import { openHttp } from './http.ts'
import type { Own } from './lifetime.ts'
import { startMaintenance } from './maintenance.ts'
import { startMasterKeyRefresh } from './master-key-refresh.ts'
import { createMetrics } from './metrics/metrics.ts'
import { createTotals, withTotals } from './metrics/totals.ts'
import { openNetworks } from './networks.ts'
import { createOverview } from './overview.ts'
import { openQueries } from './query.ts'
import { applyChains } from './reload/apply.ts'
import { type Difference, mergeLive } from './reload/difference.ts'
import { createReloader, type ReloadOutcome } from './reload/reload.ts'
import { createReadiness, createStatus, listUntracked } from './status.ts'
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
  /** Reads the configuration again as it was read for the start; a reload is refused without it. */
  reread?(): Config
  /** Sets the least severe level of the log. */
  setLogLevel?(level: Config['logging']['level']): void
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
  /** Is not ready any more, but serves on until load balancers have noticed. */
  drain(signal?: AbortSignal): Promise<void>
  stop(): Promise<void>
}

// Two checks of a load balancer, most of which check every one to two seconds.
const usualDrainSeconds = 5

/** Starts every part of the service, in the order in which they need each other. */
export async function startApp(options: AppOptions): Promise<App> {
  const { env, cwd, log, version, clock = systemClock, ids = systemIds, local } = options
  const config = resolveChains(options.config, env)
  let running = config
  const current = () => running
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
  const endpoints = endpointRules(current, developmentRules)
  const installation = { db, clock, ids, sealer, log, endpoints } satisfies Installation
  await describeNetworks(db, describedNetworks(config))
  const routes = createLiveRoutes(routedChains(config, await listNetworks(db)))
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

  const courier = own(openWebhooks(current, installation))
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
    ...{ current, places: options.places ?? [], networks, wallets, sockets: () => sockets },
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
  metrics.watchNetworks(() => networks.byPath.values())
  metrics.watchUpstreams(nodes)
  const status = createStatus({
    ...{ current, db, clock, version, networks, wallets, queries, courier },
    lastReload: () => reloader.last(),
    limiter: access.limiter,
    connections: () => sockets?.connections(),
    database: server.mode,
  })
  const operations = createOperations({
    routes,
    installation: {
      ...installation,
      shareOf,
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
    const parts = { db, env, clock, log, routes, networks, queries, wallets, operations }
    if (isChains)
      await applyChains(
        { ...parts, sockets: () => sockets },
        { before: running, after, difference },
        commit,
      )
    else commit()
    if (settings.some((key) => key.startsWith('webhooks.'))) await courier.replace()
    await writeConnection()
  }
  const reloader = createReloader({
    ...{ current, apply, clock, log, read: () => reread(options) },
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
      ...{ current, reload: reloader.reload },
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
  const writeConnection = () => {
    const chains = connectedChains(running, local?.facts)
    const content = { base_url, ws_url, ...(admin_url && { admin_url }), ...demo, chains }
    return writeConnectionFile(dataDir, content)
  }
  const connectionFile = await writeConnection()
  starting.defer(() => removeConnectionFile(dataDir))

  own(reloader)
  const parts = starting.move()
  let stopped: Promise<void> | undefined
  return {
    ...{ base_url, ws_url, admin_url, dataDir, connectionFile, database: server.mode, demo },
    sign_in_url: signIn && `${base_url}/#sign-in=${signIn.code}`,
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

/** The configuration as it is now, with what its secrets refer to. */
function reread({ reread, env }: AppOptions): Config {
  if (!reread)
    throw new ConfigError([{ message: 'This service has no configuration to read again.' }])
  const next = reread()
  const problems = checkSecrets(next, { env })
  if (problems.length > 0) throw new ConfigError(problems)
  return resolveChains(next, env)
}

/** The limits of organizations without records. */
const defaultLimits = ({ limits: { replicas: _, ...defaults } }: Config) => defaults

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
