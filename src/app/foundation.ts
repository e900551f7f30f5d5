// The lower half of a start (docs/architecture.md, "Start and stop"): everything that chains and listeners are built on.

import type { Installation } from '../domain/context.ts'
import { createLiveRoutes } from '../http/routes.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { DataDirLock } from '../storage/embedded/lock.ts'
import { describeNetworks, listNetworks } from '../storage/tracking/networks.ts'
import { openAccess } from './access.ts'
import { checkAddresses } from './admin-listener.ts'
import { ensureDemo, warnOfDevelopment } from './bootstrap.ts'
import type { ServicePart } from './cluster/part.ts'
import { hasDevelopmentRules } from './config/development.ts'
import type { Env } from './config/problem.ts'
import { resolveChains } from './config/resolve.ts'
import type { Config } from './config/schema.ts'
import { type DatabaseServer, openDataDir, openMasterSealer } from './data-directory.ts'
import { openServiceDatabase } from './database.ts'
import { describedNetworks, routedChains } from './described-chains.ts'
import type { Own } from './lifetime.ts'
import type { LogHooks } from './logger.ts'
import { createMetrics } from './metrics/metrics.ts'
import { createTotals, withTotals } from './metrics/totals.ts'
import { rolesOf } from './roles.ts'
import { startTelemetry } from './telemetry/start.ts'
import { endpointRules } from './webhooks.ts'

/** What all other parts of the service are built on. */
export type Foundation = Awaited<ReturnType<typeof openFoundation>>

/**
 * Opens the configuration, the database, authentication, limits, routes and metrics, in this order: addresses are checked
 * before the database is migrated, and the master key is read before anything is sealed with it.
 */
export async function openFoundation(
  options: {
    config: Config
    env: Env
    cwd: string
    log: Log
    version: string
    clock: Clock
    ids: Ids
    /** Present where local chains run; their caller holds the lock of the data directory. */
    local: { lock: DataDirLock } | undefined
    part: ServicePart | undefined
    /** The embedded database, where its start was begun before. */
    server?: Promise<DatabaseServer> | undefined
    attachLog?(hooks: LogHooks): void
    signal?: AbortSignal | undefined
  },
  own: Own,
) {
  const { env, cwd, log, version, clock, ids, local, part, server: begun, signal } = options
  // First: it has to stop also where the start fails before the database is used.
  if (begun) own({ stop: async () => await (await begun.catch(() => undefined))?.stop() })
  const config = resolveChains(options.config, env)
  const roles = rolesOf(config.server.roles)
  // A reload replaces the configuration that runs. What cannot change while it runs reads `config`.
  const running = { config }
  const current = () => running.config

  const dataDir = await openDataDir(config, env, cwd)
  if (!part) await checkAddresses(config)
  const tracing = await startTelemetry(config, options, own)
  const sealer = await openMasterSealer(config, { dataDir, env, log })
  const given = part?.server
  const tools = { dataDir, env, log, clock, lock: local?.lock, given, begun, tracing, signal }
  const database = await openServiceDatabase(config, tools, own)
  const { db, pool, nonceMemory } = database

  // Decided once: a reload must not turn a production service into a demo.
  const developmentRules = hasDevelopmentRules(config, local !== undefined)
  const endpoints = endpointRules(current, developmentRules)
  const installation = { db, clock, ids, sealer, log, endpoints } satisfies Installation
  await describeNetworks(db, describedNetworks(config))
  // Also chains that were configured before, whose data can still be read.
  const routes = createLiveRoutes(routedChains(config, await listNetworks(db)))
  const totals = createTotals()
  const metrics = withTotals(createMetrics(version, routes), totals)
  const { authenticationFailed: onFailure } = metrics
  const access = await openAccess(
    config,
    installation,
    {
      ...{ env, pool, nonceMemory, onFailure, isServing: roles.isServing, tracing },
      limiter: part?.limiter,
    },
    own,
  )
  const demo = developmentRules ? await ensureDemo(installation) : undefined
  // Of several processes the supervisor does it.
  if (!part) await warnOfDevelopment(config, { db, log, hasLocalChains: local !== undefined })
  return {
    ...{ config, running, current, roles, dataDir, tracing, database, developmentRules, endpoints },
    ...{ sealer, routes, totals, metrics, access, demo, env, version },
    installation: {
      ...installation,
      ...(access.changes && { publishChange: access.changes.publish }),
    } satisfies Installation,
  }
}
