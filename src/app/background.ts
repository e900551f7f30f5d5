// Everything that runs without a request. Which of it a process runs follows from its roles; work that must not run twice holds a
// lease, so several processes may have the same role.

import type { Installation } from '../domain/context.ts'
import type { Sockets } from '../http/websocket/websocket.ts'
import type { Ids } from '../lib/ids.ts'
import { startAnnouncer } from '../workers/events/announcer.ts'
import { startLiveEvents } from '../workers/events/live.ts'
import { startNodeWatch } from '../workers/events/node-watch.ts'
import { startAuditChain } from '../workers/janitor/audit-chain.ts'
import { startJanitor } from '../workers/janitor/janitor.ts'
import { startOrganizationErasing } from '../workers/janitor/organization-erasing.ts'
import { startRollup } from '../workers/metrics/rollup.ts'
import type { Place } from './chain-openers.ts'
import type { ChainServices } from './chain-services.ts'
import type { Foundation } from './foundation.ts'
import type { Own } from './lifetime.ts'
import { createOverview } from './overview.ts'
import type { Webhooks } from './webhooks.ts'

/** The holders of leases of this process, so that metrics show its leases and not those of others. */
type Holders = { newHolder(): string; isOwn(holder: string): boolean }

/** Makes an empty list. A network that is replaced gets a new holder, so that it waits for the lease of the old one. */
export function createHolders(ids: Ids): Holders {
  const own = new Set<string>()
  return {
    newHolder: () => {
      const holder = ids.uuid()
      own.add(holder)
      return holder
    },
    isOwn: (holder) => own.has(holder),
  }
}

/**
 * Starts the work that no request waits for, and shows what the parts know of themselves: maintenance, incidents, live
 * events, figures by minute and metrics. Which of it runs depends on the roles of the process.
 */
export function startBackground(
  foundation: Foundation,
  parts: {
    chains: ChainServices
    courier: Webhooks | undefined
    holders: Holders
    /** Those that a test brings along. */
    places: readonly Place[]
    isEmbedded: boolean
    sockets(): Sockets | undefined
  },
  own: Own,
) {
  const { roles, installation, database, current } = foundation
  const { courier, places, isEmbedded, sockets } = parts
  const { networks, wallets } = parts.chains
  const { db, clock, ids, log } = installation
  const { newHolder } = parts.holders
  startMaintenance(foundation, newHolder, own)
  const overview = createOverview({
    ...{ current, places, networks, wallets, sockets, isEmbedded, holder: ids.uuid() },
  })
  const { nodes, lags } = overview
  // Only processes with the API have clients that could listen.
  const live = roles.has('api') ? own(startLiveEvents({ db, clock, log, nodes })) : undefined
  const limits = () => current().limits
  const incidents = { db: database.workersDb, clock, log, nodes, limits, newHolder }
  startIncidents(incidents, roles.isBackground, own)
  own(
    startRollup({
      ...{ db, clock, log, holder: ids.uuid() },
      lags: roles.has('tracker') ? lags : () => [],
      totals: () =>
        foundation.totals.read({
          networks: networks.byPath.values(),
          courier: courier?.status(),
        }),
    }),
  )
  watchParts(foundation, parts)
  foundation.metrics.watchUpstreams(nodes)
  return { overview, live }
}

/** Lets metrics read the parts that this process runs; the others would show zeros that mean nothing. */
function watchParts(
  { metrics, roles, database, installation, dataDir, access }: Foundation,
  { chains, courier, holders }: Parameters<typeof startBackground>[1],
): void {
  metrics.watchPools({ requests: database.pool, workers: database.workersPool })
  metrics.watchInstallation({ db: installation.db, dataDir, isOwn: holders.isOwn })
  if (courier) metrics.watchCourier(courier)
  if (roles.has('tracker')) metrics.watchTrackers(chains.wallets)
  if (!roles.isServing) return
  metrics.watchLimiter(access.limiter.status)
  metrics.watchPending(chains.queries.status)
  metrics.watchNetworks(() => chains.networks.byPath.values())
}

/**
 * Starts the janitor, which also stores what this process knows of used credentials, and in processes with a background
 * role the audit chain and the erasing of organizations.
 */
function startMaintenance(
  { config, roles, installation, database, access }: Foundation,
  newHolder: () => string,
  own: Own,
): void {
  const { clock, ids, log, sealer } = installation
  const { db, workersDb, nonceMemory } = database
  if (roles.isBackground) {
    own(
      startAuditChain({
        ...{ db: workersDb, clock, ids, log, sealer, holder: newHolder() },
        keepMs: config.audit.retention_days * 86_400_000,
      }),
    )
    own(startOrganizationErasing({ db: workersDb, clock, log, holder: newHolder() }))
  }
  own(
    startJanitor({
      ...{ db, clock, log },
      takeUsedCredentials: () => [...access.authenticator.takeUsed(), ...access.keys.takeUsed()],
      keepNonces: () => nonceMemory.keep(),
    }),
  )
}

/** Starts what notices incidents and, in a process with a background role, announces operational events. */
function startIncidents(
  parts: Pick<Installation, 'db' | 'clock' | 'log'> & {
    newHolder(): string
    nodes: Parameters<typeof startNodeWatch>[0]['nodes']
    limits: Parameters<typeof startAnnouncer>[0]['limits']
  },
  isBackground: boolean,
  own: Own,
): void {
  const { db, clock, log, nodes, limits, newHolder } = parts
  // In every process: each has connections of its own, and one of them may be cut off.
  own(startNodeWatch({ db, clock, log, nodes }))
  if (isBackground) own(startAnnouncer({ db, clock, log, holder: newHolder(), limits }))
}
