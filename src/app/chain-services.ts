import { createOperationUsage } from '../domain/access/operation-usage.ts'
import { createAuditTrail } from '../domain/audit/trail.ts'
import { createUsageWriter, type UsageWriter } from '../gateway/usage/usage.ts'
import type { EventStreams } from '../http/events/streams.ts'
import { addMethodUsage } from '../storage/access/method-usage.ts'
import { type Place, placesOf } from './chain-openers.ts'
import type { NetworkSharing } from './cluster/network-sharing.ts'
import { startDuplicateCheck } from './duplicates.ts'
import type { FilterPeers } from './filter-peers.ts'
import type { Foundation } from './foundation.ts'
import type { Own } from './lifetime.ts'
import { openNetworks } from './networks.ts'
import { noQueries, openQueries } from './query.ts'
import { openWallets } from './wallets.ts'

/** The parts of the service that use chains, and what counts the calls of both APIs. */
export type ChainServices = Awaited<ReturnType<typeof openChainServices>>

/** Opens the networks of the gateway, the query chain and the wallets, each where the roles of the process use it. */
export async function openChainServices(
  foundation: Foundation,
  options: {
    /** Where wallets are tracked, in place of the chains of the configuration. */
    places: readonly Place[] | undefined
    peers: FilterPeers | undefined
    sharing: NetworkSharing | undefined
    newHolder(): string
    onReorganized: EventStreams['reorganized']
  },
  own: Own,
) {
  const { config, env, roles, installation, database, tracing, endpoints } = foundation
  const { db, clock, ids, log } = installation
  // First: query chain and wallets of EVM chains use the nodes of the gateway.
  const networks = own(
    openNetworks(config, {
      ...{ env, log, clock, ids, tracing, peers: options.peers, sharing: options.sharing },
      spill: (counts) => usage.add(counts),
      onReorganized: options.onReorganized,
    }),
  )
  const queries = roles.isServing
    ? own(await openQueries(config, { db, clock, log, networks }))
    : noQueries
  const configured = options.places ?? placesOf(config, { env, clock, log, networks })
  const wallets = own(
    await openWallets(config, roles.hasWallets ? configured : [], {
      ...{ db: database.workersDb, clock, log, endpoints, roles, tracing },
      newHolder: options.newHolder,
    }),
  )
  if (roles.hasWallets && !options.places)
    own(startDuplicateCheck(config, { db, env, clock, log, wallets }))
  // Counts in memory; what does not fit is written at once.
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
  return { networks, queries, wallets, operationUsage, audit }
}
