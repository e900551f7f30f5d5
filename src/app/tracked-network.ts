// One network that wallets are tracked on: starts the workers that the roles of the process ask for, and shows how far
// they are.

import type { Chain, ChainNodes } from '../chains/chain.ts'
import type { NetworkNodes, OpenChain } from '../domain/context.ts'
import type { Clock } from '../lib/clock.ts'
import { createHistogram, waitBounds } from '../lib/histogram.ts'
import type { Log } from '../lib/log.ts'
import type { Tracing } from '../lib/tracing.ts'
import type { Db } from '../storage/pg/database.ts'
import { type GapRange, listOpenGaps } from '../storage/tracking/gaps.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import { startImporter } from '../workers/jobs/importer.ts'
import { startTokenMetadata } from '../workers/jobs/token-metadata.ts'
import { type SenderStatus, startSender } from '../workers/sender/sender.ts'
import { startTracker, type Tracker, type TrackerStatus } from '../workers/tracker/tracker.ts'
import {
  startTrackerWatch,
  type TrackerHealth,
  type TrackerWatch,
} from '../workers/tracker/watch.ts'
import type { GuardedFetch } from '../workers/webhooks/guarded-fetch.ts'
import type { Place } from './chain-openers.ts'
import type { Config } from './config/schema.ts'
import type { TrackerTimings } from './metrics/tracker.ts'
import type { Refusals } from './refusals.ts'
import type { Roles } from './roles.ts'

/** A network with its workers. */
export type Tracked = OpenChain & {
  tracker: Tracker
  watch: TrackerWatch
  sender: { status(): Promise<SenderStatus> } | undefined
  stop(): Promise<void>
}

/** What `/status` says of a network that is tracked. */
type TrackingStatus = TrackerStatus &
  TrackerHealth & { gaps: GapRange[]; transactions?: SenderStatus }

/** How the networks of a process are. */
export type TrackedViews = {
  /** For `/status`: by the name of the chain, then by that of the network. */
  status(): Promise<Record<string, Record<string, TrackingStatus>>>
  /** The nodes that the chains own; without a database query. Empty where they belong to the gateway (C). */
  nodes(): (NetworkNodes & Pick<ChainNodes, 'chain_id' | 'head'>)[]
  /** How long the work for new blocks took. */
  timings(): TrackerTimings[]
  /** How far this process knows the tracked networks to be; without a database query. */
  tracked(): (NetworkName &
    TrackerHealth &
    Pick<TrackerStatus, 'head' | 'block_number'> & { network_id: number })[]
  /** The networks that are not tracked, and why; without a database query. */
  problems(): (NetworkName & TrackerHealth)[]
}

/** Makes the function that starts the workers of a network. */
export function createTrack(
  config: Config,
  tools: {
    db: Db
    newHolder(): string
    clock: Clock
    log: Log
    roles: Roles
    tracing?: Tracing | undefined
    fetch: GuardedFetch
    /** The other networks with nodes of their own. */
    othersOf(place: Place): readonly NetworkName[]
  },
): (opened: { place: Place; network_id: number; chain: Chain }) => Tracked {
  const { db, clock, log, newHolder, roles, tracing, fetch, othersOf } = tools
  const { created_expiry_hours } = config.transactions
  const createdExpiryMs = created_expiry_hours > 0 ? created_expiry_hours * 3_600_000 : undefined
  const { reconcile_hours } = config.balances
  const ipfsGateway = config.metadata.ipfs_gateway

  return ({ place, network_id, chain }) => {
    const name = { chain: place.chain, network: place.network }
    const holder = newHolder()
    const isTracking = roles.has('tracker')
    const tracker = !isTracking
      ? trackedElsewhere({ db, network_id, name, chain })
      : startTracker({
          ...{ db, clock, log, holder, network_id, name, chain, tracing },
          others: () => othersOf(place),
          // The other families have a fixed interval.
          ...(chain.changesSilently === 'tokens' && {
            reconcile: { everyMs: reconcile_hours * 3_600_000 },
          }),
        })
    const watch = startTrackerWatch({ db, clock, log, network_id, name, chain, tracker })
    const jobs = isTracking
      ? [
          startImporter({ db, clock, log, network_id, chain }),
          startTokenMetadata({ db, clock, log, network_id, chain, fetch, ipfsGateway }),
        ]
      : []
    const { sending } = chain
    const sender =
      sending && roles.has('sender')
        ? startSender({
            ...{ db, clock, log, holder, network_id, name, createdExpiryMs },
            chain: { ...chain, sending },
          })
        : undefined
    return {
      ...{ network_id, name, chain, tracker, watch, sender },
      // The watch first, or it would report the stopping tracker; the chain last, because the workers use it.
      stop: async () => {
        await watch.stop()
        await Promise.all([tracker.stop(), sender?.stop(), ...jobs.map((job) => job.stop())])
        await chain.stop()
      },
    }
  }
}

/** Shows the networks of a process, as they are when it is asked. */
export const viewTracked = (
  tracked: ReadonlyMap<Place, Tracked>,
  refusals: Pick<Refusals, 'list'>,
): TrackedViews => ({
  status: async () => {
    const chains: Record<string, Record<string, TrackingStatus>> = {}
    for (const { health, ...name } of refusals.list()) {
      chains[name.chain] ??= {}
      chains[name.chain]![name.network] = { ...untrackedStatus(name), ...health, gaps: [] }
    }
    for (const { name, tracker, watch, sender, chain } of tracked.values()) {
      // `/status` must answer while the database is unreachable.
      const gaps = await tracker.gaps().catch(() => [])
      const transactions = await sender?.status()
      const { upstreams, ...nodes } = chain.status?.() ?? {}
      chains[name.chain] ??= {}
      chains[name.chain]![name.network] = {
        ...tracker.status(),
        ...watch.health(),
        gaps,
        ...(Object.keys(nodes).length > 0 && { nodes }),
        ...(transactions && { transactions }),
      }
    }
    return chains
  },
  nodes: () =>
    [...tracked.values()].map(({ name, chain }) => {
      const { chain_id = null, head = null, upstreams = [] } = chain.status?.() ?? {}
      return { ...name, chain_id, head, upstreams }
    }),
  timings: () =>
    [...tracked.values()].map(({ name, tracker }) => ({ ...name, ...tracker.timings() })),
  tracked: () =>
    [...tracked.values()].map(({ network_id, name, tracker, watch }) => {
      const { head, block_number } = tracker.status()
      return { ...name, ...watch.health(), network_id, head, block_number }
    }),
  problems: () => [
    ...[...tracked.values()].flatMap(({ name, watch }) => {
      const health = watch.health()
      return health.health === 'ok' ? [] : [{ ...name, ...health }]
    }),
    ...refusals.list().map(({ health, ...name }) => ({ ...name, ...health })),
  ],
})

const none = createHistogram(waitBounds).read()

/** The status of a network that this process does not track. */
const untrackedStatus = (name: NetworkName, head: number | null = null): TrackerStatus => ({
  ...name,
  state: 'waiting',
  block_number: null,
  head,
  reorganizations: 0,
  forged_blocks: 0,
  refill: { filled: 0, failed: 0 },
  unknown_kinds: {},
  last_error: '',
  last_error_time: null,
})

/** Stands for the tracker in a process without the role `tracker`: like one that waits for its lease. */
const trackedElsewhere = (options: {
  db: Db
  network_id: number
  name: NetworkName
  chain: Pick<Chain, 'newest'>
}): Tracker => ({
  status: () => untrackedStatus(options.name, options.chain.newest() ?? null),
  failing: () => undefined,
  timings: () => ({ stored: none, settled: none }),
  gaps: () => listOpenGaps(options.db, options.network_id),
  stop: async () => {},
})
