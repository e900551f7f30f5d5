// Tracks wallets: opens networks and starts their workers (`tracked-network.ts`). A network whose nodes are unreachable
// does not stop the service: its state is in `problems()`.

import type { Chain } from '../chains/chain.ts'
import { OperationError } from '../contract/errors/errors.ts'
import type { Chains } from '../domain/context.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { EndpointRules } from '../lib/net/endpoint.ts'
import type { Tracing } from '../lib/tracing.ts'
import { notifyChange } from '../storage/pg/changes.ts'
import type { Db } from '../storage/pg/database.ts'
import { findCursor } from '../storage/tracking/blocks.ts'
import {
  ensureNetwork,
  findStoredNetwork,
  listTracked,
  type NetworkName,
} from '../storage/tracking/networks.ts'
import { createGuardedFetch } from '../workers/webhooks/guarded-fetch.ts'
import type { Place } from './chain-openers.ts'
import type { Config } from './config/schema.ts'
import type { Stoppable } from './lifetime.ts'
import { createRefusals } from './refusals.ts'
import type { Roles } from './roles.ts'
import { traceChain } from './telemetry/traced-parts.ts'
import { createTrack, type Tracked, type TrackedViews, viewTracked } from './tracked-network.ts'

/** The networks that wallets are tracked on. */
export type Wallets = TrackedViews & {
  chains: Chains
  /** Does not track a network while another one with the same nodes is configured. */
  refuse(at: NetworkName, twin: { other: NetworkName; identity: string }): void
  /** Another process has begun to track a network, or asks that it is tracked. */
  join(at: NetworkName): void
  /** Opens the nodes of a network without tracking it yet, and says whether it will be tracked. */
  prepare(place: Place): Promise<PreparedPlace>
  /** The row id of a network that will be tracked. */
  enroll(place: Place): Promise<number>
  /**
   * Tracks other places from now on: those of `changed` in place of what had their name, none of `removed`. The workers
   * of both continue until they are stopped; a tracker that takes over waits for the lease until then.
   */
  replace(change: PlaceChange): Stoppable
  stop(): Promise<void>
}

/** A network whose nodes are open and which is not tracked yet. */
export type PreparedPlace = {
  place: Place
  chain: Chain
  /** Whether it is tracked from the start, not from its first use on. */
  isTracked: boolean
  /** Whether it was tracked before, so that its rows have a cursor. */
  isResumed: boolean
}

/** Which places a reload changes. */
export type PlaceChange = {
  changed: readonly { place: Place; opened: OpenedPlace | undefined }[]
  removed: readonly NetworkName[]
  /** Those that stay with other nodes. */
  renewed?: readonly NetworkName[]
}

/** A network with the id of its rows. */
export type OpenedPlace = Pick<PreparedPlace, 'place' | 'chain' | 'isResumed'> & {
  network_id: number
}

// How long a registration waits for the first block of its network.
const beginTimeoutMs = 10_000
const beginPollMs = 20
// A notification of a new network may be lost: processes that track or send also look for themselves.
const joinPollMs = 30_000
const askAgainMs = 1_000

/**
 * Tracks wallets. The default networks of the chains that the specification names are tracked from the start, every
 * other one from its first registration on: a configured network without wallets costs its nodes nothing. Once
 * tracked it stays so over restarts.
 */
export async function openWallets(
  config: Config,
  places: readonly Place[],
  tools: {
    db: Db
    newHolder(): string
    clock: Clock
    log: Log
    endpoints: EndpointRules
    roles: Roles
    tracing?: Tracing | undefined
  },
): Promise<Wallets> {
  const { db, clock, log, endpoints, roles, tracing } = tools
  const byPath = new Map(places.map((place) => [pathOf(place), place]))
  let defaults = defaultsOf(byPath)
  // Promises, so that two registrations at once open a network once.
  const opening = new Map<Place, Promise<Tracked>>()
  const tracked = new Map<Place, Tracked>()
  // The places where registration is possible.
  const ready = new Set<Place>()
  const refusals = createRefusals({ clock, log })
  // Token metadata is at addresses that third parties choose: private networks are refused as for webhooks.
  const fetch = createGuardedFetch({ ...endpoints, allowHttp: true })
  const stopping = new AbortController()

  const track = createTrack(config, {
    ...tools,
    fetch,
    othersOf: (place) =>
      place.isShared
        ? []
        : [...byPath.values()].filter((other) => other !== place && !other.isShared),
  })

  const placeOf = (chain: string, network?: string): Place | undefined =>
    network === undefined ? defaults.get(chain) : byPath.get(`${chain}/${network}`)

  const enroll = (place: Place): Promise<number> =>
    ensureNetwork(db, {
      ...{ chain: place.chain, network: place.network, create_time: new Date(clock.now()) },
      ...{ variants: place.variants ?? '', is_default: place.isDefault },
    })

  const openChain = async (place: Place): Promise<Chain> => {
    const stored = await findStoredNetwork(db, place.chain, place.network)
    const chain = await place.open(stored?.address_rules ?? undefined)
    return tracing ? traceChain(chain, tracing, pathOf(place)) : chain
  }

  const open = (place: Place): Promise<Tracked> => {
    let begun = opening.get(place)
    if (!begun) {
      begun = (async () => {
        const network_id = await enroll(place)
        const done = track({ place, network_id, chain: await openChain(place) })
        // Unless it was replaced or removed meanwhile: then it is being stopped.
        if (byPath.get(pathOf(place)) === place) tracked.set(place, done)
        return done
      })()
      opening.set(place, begun)
      // The next call tries again.
      begun.catch(() => opening.delete(place))
    }
    return begun
  }

  // Networks that were tracked before are tracked again, whether or not they have wallets now.
  const resumed = new Set((await listTracked(db)).map(pathOf))
  for (const place of places)
    if (isTrackedFromStart(place) || resumed.has(pathOf(place))) {
      await open(place)
      ready.add(place)
    }

  /** Opens a network that another process tracks, to track on when that one is gone and to send. */
  const join = (at: NetworkName) => {
    const place = byPath.get(pathOf(at))
    if (!place || stopping.signal.aborted || opening.has(place) || refusals.find(place)) return
    open(place).catch((error: unknown) =>
      log.warn({ err: error, ...at }, 'opening a network failed, will retry'),
    )
  }

  const joinRegularly = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await clock.sleep(joinPollMs, stopping.signal).catch(() => {})
      if (stopping.signal.aborted) return
      await listTracked(db).then(
        (all) => all.forEach(join),
        (error: unknown) => log.debug({ err: error }, 'reading the tracked networks failed'),
      )
    }
  }
  const joining =
    places.length > 0 && (roles.has('tracker') || roles.has('sender'))
      ? joinRegularly()
      : Promise.resolve()

  /** A deposit between a registration and the first tracked block would be missed, so the block comes first. */
  const begin = async (place: Place): Promise<Tracked> => {
    const twin = refusals.find(place)
    if (twin)
      throw new OperationError('UPSTREAM_UNAVAILABLE', {
        detail: `${pathOf(place)} is not tracked: its nodes are those of ${pathOf(twin)}. Nothing was registered.`,
      })
    const opened = await open(place)
    const deadline = clock.now() + beginTimeoutMs
    let askedAt = Number.NEGATIVE_INFINITY
    while (!ready.has(place)) {
      if (await findCursor(db, opened.network_id)) ready.add(place)
      else if (stopping.signal.aborted || clock.now() > deadline)
        throw new OperationError('UPSTREAM_UNAVAILABLE', {
          detail: `Tracking of ${place.chain}/${place.network} has not begun yet. Nothing was registered.`,
          retryAfter: 5,
        })
      else {
        // Announced again, because a notification may be lost and the request waits.
        if (clock.now() - askedAt >= askAgainMs) {
          askedAt = clock.now()
          await notifyChange(db, { kind: 'track', chain: place.chain, network: place.network })
        }
        await clock.sleep(beginPollMs)
      }
    }
    return opened
  }

  return {
    chains: {
      find: (chain, network) => {
        const place = placeOf(chain, network)
        return place && ready.has(place) ? tracked.get(place) : undefined
      },
      open: async (chain, network) => {
        const place = placeOf(chain, network)
        return place && !stopping.signal.aborted ? await begin(place) : undefined
      },
      defaultOf: (chain) => defaults.get(chain)?.network,
    },
    ...viewTracked(tracked, refusals),
    refuse: (at, { other, identity }) => {
      const [place, holder] = [byPath.get(pathOf(at)), byPath.get(pathOf(other))]
      // It may have been used, or replaced by a reload, while the nodes were asked.
      if (!place || !holder || opening.has(place)) return
      refusals.add(place, { other: holder, identity })
    },
    join,
    prepare: async (place) => {
      const isResumed = (await listTracked(db)).some((one) => pathOf(one) === pathOf(place))
      const isTracked = isTrackedFromStart(place) || isResumed
      return { place, chain: await openChain(place), isTracked, isResumed }
    },
    enroll,
    replace: ({ changed, removed, renewed = [] }) => {
      const names = new Set([...removed, ...changed.map(({ place }) => place)].map(pathOf))
      const gone = [...names].flatMap((path) => byPath.get(path) ?? [])
      const left = gone.flatMap((place) => opening.get(place) ?? [])
      for (const place of gone) {
        byPath.delete(pathOf(place))
        opening.delete(place)
        tracked.delete(place)
        ready.delete(place)
      }
      for (const place of [...gone, ...renewed.flatMap((at) => byPath.get(pathOf(at)) ?? [])])
        refusals.forget(place)
      for (const { place } of changed) byPath.set(pathOf(place), place)
      defaults = defaultsOf(byPath)
      for (const { place, opened } of changed) {
        if (!opened) continue
        const begun = track(opened)
        tracked.set(place, begun)
        opening.set(place, Promise.resolve(begun))
        // A registration on a new network waits for its first block.
        if (opened.isResumed) ready.add(place)
      }
      return { stop: () => stopAll(left) }
    },
    stop: async () => {
      stopping.abort()
      await joining
      await stopAll([...opening.values()])
      await fetch.stop()
    },
  }
}

const isTrackedFromStart = ({ isDefault, isLazy }: Place): boolean => isDefault && !isLazy

const pathOf = ({ chain, network }: NetworkName): string => `${chain}/${network}`

const defaultsOf = (places: ReadonlyMap<string, Place>): ReadonlyMap<string, Place> =>
  new Map([...places.values()].flatMap((one) => (one.isDefault ? [[one.chain, one]] : [])))

async function stopAll(begun: readonly Promise<Tracked>[]): Promise<void> {
  const all = await Promise.allSettled(begun)
  await Promise.all(all.map((each) => each.status === 'fulfilled' && each.value.stop()))
}
