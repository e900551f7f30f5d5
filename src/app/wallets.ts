// Opens the chain of each wallet service and starts its workers: tracker, watch, importer, sender and token
// metadata. A chain whose nodes are unreachable does not stop the service: its state is in `problems()`.

import type { WalletService } from '../contract/variant.ts'
import type { Chains, OpenChain } from '../domain/context.ts'
import type { Ids } from '../lib/ids.ts'
import type { EndpointRules } from '../lib/net/endpoint.ts'
import type { Db } from '../storage/pg/database.ts'
import type { GapRange } from '../storage/tracking/gaps.ts'
import { ensureNetwork } from '../storage/tracking/networks.ts'
import { startImporter } from '../workers/jobs/importer.ts'
import { startTokenMetadata } from '../workers/jobs/token-metadata.ts'
import { type Sender, type SenderStatus, startSender } from '../workers/sender/sender.ts'
import { startTracker, type Tracker, type TrackerStatus } from '../workers/tracker/tracker.ts'
import {
  startTrackerWatch,
  type TrackerHealth,
  type TrackerWatch,
} from '../workers/tracker/watch.ts'
import { createGuardedFetch } from '../workers/webhooks/guarded-fetch.ts'
import { type Opener, type Openers, type OpenerTools, systemOpeners } from './chain-openers.ts'
import type { Config } from './config/schema.ts'
import type { NetworkNodes } from './metrics/upstreams.ts'

/** The chains that wallets are tracked on. */
export type Wallets = {
  chains: Chains
  /** For `/status`: by the tag of the chain. */
  status(): Promise<
    Record<
      string,
      TrackerStatus & TrackerHealth & { gaps: GapRange[]; transactions?: SenderStatus }
    >
  >
  /** The nodes that the chains own, for metrics. */
  nodes(): NetworkNodes[]
  /** The networks that are not tracked, and why; without a database query. */
  problems(): TrackingProblem[]
  stop(): Promise<void>
}

/** A network that is not tracked. */
export type TrackingProblem = { chain: string; network: string } & TrackerHealth

/** Opens the chains of the wallet services on their default networks, and tracks them. */
export async function openWallets(
  config: Config,
  tools: OpenerTools & {
    db: Db
    ids: Ids
    endpoints: EndpointRules
    openers?: Openers | undefined
  },
): Promise<Wallets> {
  const { db, clock, log, ids, endpoints, openers = systemOpeners } = tools
  const open = new Map<WalletService, OpenChain>()
  const trackers = new Map<WalletService, Tracker>()
  const watches = new Map<WalletService, TrackerWatch>()
  const senders = new Map<WalletService, Sender>()
  const stops: (() => Promise<void>)[] = []
  // Token metadata is at addresses that strangers choose: private networks are refused as for webhooks.
  const fetch = createGuardedFetch({ ...endpoints, allowHttp: true })
  const { created_expiry_hours } = config.transactions
  const createdExpiryMs = created_expiry_hours > 0 ? created_expiry_hours * 3_600_000 : undefined
  const { reconcile_hours } = config.balances
  const ipfsGateway = config.metadata.ipfs_gateway

  const track = async (service: WalletService, network: string, chain: OpenChain['chain']) => {
    const create_time = new Date(clock.now())
    const network_id = await ensureNetwork(db, { chain: service, network, create_time })
    open.set(service, { network_id, network, chain })
    const holder = ids.uuid()
    const tracker = startTracker({
      ...{ db, clock, log, holder, network_id, network, chain },
      // The other families have a fixed interval.
      ...(chain.changesSilently === 'tokens' && {
        reconcile: { everyMs: reconcile_hours * 3_600_000 },
      }),
    })
    trackers.set(service, tracker)
    const watch = startTrackerWatch({ db, clock, log, network_id, network, chain, tracker })
    watches.set(service, watch)
    const importer = startImporter({ db, clock, log, network_id, chain })
    const { sending } = chain
    const sender =
      sending &&
      startSender({
        ...{ db, clock, log, holder, network_id, network, createdExpiryMs },
        chain: { ...chain, sending },
      })
    if (sender) senders.set(service, sender)
    const metadata = startTokenMetadata({ db, clock, log, network_id, chain, fetch, ipfsGateway })
    // The watch first, or it would report the stopping tracker; the chain last, because the workers use it.
    stops.push(async () => {
      await watch.stop()
      await Promise.all([tracker.stop(), importer.stop(), metadata.stop(), sender?.stop()])
      await chain.stop()
    })
  }

  for (const [service, opener] of Object.entries(openers) as [WalletService, Opener][]) {
    const opened = await opener(config, tools)
    if (opened) await track(service, opened.network, opened.chain)
  }

  return {
    chains: { find: (service) => open.get(service) },
    status: async () =>
      Object.fromEntries(
        await Promise.all(
          [...trackers].map(async ([service, tracker]) => {
            // `/status` must answer while the database is unreachable.
            const gaps = await tracker.gaps().catch(() => [])
            const transactions = await senders.get(service)?.status()
            const sent = transactions && { transactions }
            const nodes = open.get(service)?.chain.status?.()
            const shown = nodes ? { nodes } : {}
            const health = watches.get(service)!.health()
            return [service, { ...tracker.status(), ...health, gaps, ...shown, ...sent }] as const
          }),
        ),
      ),
    nodes: () =>
      [...open].map(
        ([
          chain,
          {
            network,
            chain: { status },
          },
        ]) => ({
          ...{ chain, network },
          upstreams: status?.().upstreams ?? [],
        }),
      ),
    problems: () =>
      [...watches].flatMap(([service, watch]) => {
        const health = watch.health()
        if (health.health === 'ok') return []
        return [{ chain: service, network: open.get(service)?.network ?? '', ...health }]
      }),
    stop: async () => {
      await Promise.all(stops.map((stop) => stop()))
      await fetch.stop()
    },
  }
}
