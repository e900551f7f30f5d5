// Applies the difference between two configurations to what runs. First everything that can fail: nodes are opened,
// rows written, identities compared. Then one synchronous step replaces what callers find, and what they found before
// is stopped when their calls have ended. A failure before that step leaves everything as it was.

import type { Operations } from '../../http/operations.ts'
import type { LiveRoutes } from '../../http/routes.ts'
import type { Sockets } from '../../http/websocket/websocket.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  describeNetworks,
  listIdentities,
  listNetworks,
  type NetworkName,
} from '../../storage/tracking/networks.ts'
import { resolveEvent } from '../../storage/tracking/operational-events.ts'
import { placesOf } from '../chain-openers.ts'
import type { Env } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import type { ChainSettings, EvmSettings } from '../config/sections/chains.ts'
import { describedNetworks, routedChains } from '../described-chains.ts'
import type { Networks, PreparedNetwork, RetiredNetwork } from '../networks.ts'
import { askIdentity, mayHaveIdentity, networksOf } from '../node-identity.ts'
import type { Query } from '../query.ts'
import type { PlaceChange, PreparedPlace, Wallets } from '../wallets.ts'
import type { Difference } from './difference.ts'
import { checkIdentities } from './identities.ts'

/** The parts of the service that a reload of chains changes. */
export type ChainParts = {
  db: Db
  env: Env
  clock: Clock
  log: Log
  routes: LiveRoutes
  networks: Networks
  queries: Query
  wallets: Wallets
  /** Whether the roles of this process use the networks of wallets. */
  hasWallets: boolean
  operations: Pick<Operations, 'settled'>
  sockets(): Pick<Sockets, 'closeNetwork'> | undefined
}

// Calls end within their own time limits, which are mostly shorter.
const drainMs = 30_000
const prepareMs = 30_000

/**
 * Replaces, adds and removes networks. `ready` is awaited when everything is prepared and nothing has changed; it throws
 * where another process refuses. `commit` is called in the step in which callers begin to find the new networks.
 * Resolves when what is gone has stopped.
 */
export async function applyChains(
  parts: ChainParts,
  { before, after, difference }: { before: Config; after: Config; difference: Difference },
  { ready, commit }: { ready?: (() => Promise<void>) | undefined; commit(): void },
): Promise<void> {
  const { db, clock, log, routes, networks, queries, wallets, operations, sockets } = parts
  const replaced = difference.changed.filter(({ what }) => what === 'settings')
  const opened = [...difference.added, ...replaced]
  // Stops what was opened when a later step fails.
  await using undo = new AsyncDisposableStack()
  const prepared = await within(prepareMs, prepare(parts, { after, opened, difference }, undo))
  await within(prepareMs, describeNetworks(db, describedNetworks(after)))
  const routed = routedChains(after, await within(prepareMs, listNetworks(db)))
  await ready?.()
  // Nothing below is undone: it cannot fail.
  undo.move()

  const retired: RetiredNetwork[] = []
  for (const network of prepared.networks) retired.push(...present(network.serve()))
  const isServed = (at: NetworkName) => evmAt(after, at) !== undefined
  for (const at of [...difference.removed, ...replaced.filter((one) => !isServed(one))])
    retired.push(...present(networks.remove(at)))
  const trackers = wallets.replace({
    changed: prepared.places,
    removed: [...difference.removed, ...replaced],
    renewed: difference.changed,
  })
  routes.replace(routed)
  commit()
  const recorders = await queries.replace(after, opened)
  const nodes = difference.changed.flatMap((at) => {
    const settings = at.what === 'nodes' ? evmAt(after, at) : undefined
    return settings ? [networks.changeNodes(at, settings)] : []
  })
  for (const { network } of retired) {
    const isGone = !isServed(network)
    const reason = isGone ? 'the network was removed' : 'the network was replaced'
    sockets()?.closeNetwork(network, reason)
  }

  const isLeft = ({ chain, network }: { chain: string; network: string | undefined }) => {
    const name = network ?? before.chains[chain]?.default_network
    return [...difference.removed, ...replaced].some(
      (one) => one.chain === chain && one.network === name,
    )
  }
  await Promise.all(nodes)
  // Ends the timer where the calls have ended before it.
  const over = new AbortController()
  await Promise.race([
    operations.settled(isLeft),
    clock.sleep(drainMs, over.signal).catch(() => {}),
  ])
  over.abort()
  await Promise.all([trackers.stop(), recorders.stop()])
  await Promise.all(retired.map((one) => one.drain()))
  // Another process may still track a removed network, and reports it again then.
  for (const at of difference.removed)
    for (const kind of ['tracker_failing', 'tracker_stalled'] as const)
      await resolveEvent(db, { ...at, kind, now: new Date(clock.now()) }).catch((error: unknown) =>
        log.warn({ err: error, ...at }, 'resolving the events of a removed network failed'),
      )
}

type Prepared = { networks: PreparedNetwork[]; places: PlaceChange['changed'] }

/** Opens what is new without serving it; `undo` stops it again. */
async function prepare(
  { db, env, clock, log, networks, wallets, hasWallets }: ChainParts,
  {
    after,
    opened,
    difference,
  }: { after: Config; opened: readonly NetworkName[]; difference: Difference },
  undo: AsyncDisposableStack,
): Promise<Prepared> {
  const byPath = new Map<string, PreparedNetwork>()
  for (const at of opened) {
    const settings = evmAt(after, at)
    if (!settings) continue
    const made = networks.prepare(at, settings)
    await hold(undo, made.stop)
    byPath.set(pathOf(at), made)
  }
  const all = !hasWallets
    ? []
    : placesOf(after, {
        ...{ env, clock, log },
        networks: {
          keep: (chain, network) =>
            byPath.get(pathOf({ chain, network }))?.keep() ?? networks.keep(chain, network),
          notifySent: networks.notifySent,
        },
      })
  const paths = new Set(opened.map(pathOf))
  const isOpened = (at: NetworkName) => paths.has(pathOf(at))
  const prepared: PreparedPlace[] = []
  for (const place of all.filter(isOpened)) {
    const made = await wallets.prepare(place)
    await hold(undo, () => made.chain.stop())
    prepared.push(made)
  }
  if (hasWallets) {
    const stored = await listIdentities(db)
    // Where the chain of a network is known, the pool itself refuses added nodes that report another chain id.
    const unknown = difference.changed.filter(
      (at) => !stored.some((one) => one.identity && pathOf(one) === pathOf(at)),
    )
    const asked = new Set([...paths, ...unknown.map(pathOf)])
    const all = networksOf(after).map((one) => ({
      ...one,
      nodes: {
        identity: (signal: AbortSignal) => askIdentity(one, { env, clock }, signal),
      },
      mayHave: (identity: string) => mayHaveIdentity(one, identity),
    }))
    const chainAt = (at: NetworkName) =>
      prepared.find(({ place }) => pathOf(place) === pathOf(at))?.chain
    const uncompared = await checkIdentities(
      after,
      all
        .filter((one) => asked.has(pathOf(one)))
        .map((one) => ({ ...one, nodes: chainAt(one) ?? one.nodes })),
      { others: all.filter((one) => !asked.has(pathOf(one)) && !one.isShared), stored },
    )
    for (const { network, other } of uncompared)
      log.warn(
        { ...network, other: pathOf(other) },
        'whether two networks have the same nodes is not known: no node of the other one answers',
      )
  }
  // Rows are written last: a refused network leaves none.
  const places = await Promise.all(
    prepared.map(async ({ place, chain, isTracked, isResumed }) => {
      if (isTracked)
        return {
          place,
          opened: { place, chain, isResumed, network_id: await wallets.enroll(place) },
        }
      await chain.stop()
      return { place, opened: undefined }
    }),
  )
  return { networks: [...byPath.values()], places }
}

/** What was opened after the time was over is stopped at once. */
async function hold(undo: AsyncDisposableStack, stop: () => Promise<void>): Promise<void> {
  if (!undo.disposed) return void undo.defer(stop)
  await stop()
  throw new Error('The reload took too long.')
}

const pathOf = ({ chain, network }: NetworkName): string => `${chain}/${network}`

const present = <value>(value: value | undefined): value[] => (value === undefined ? [] : [value])

/** The settings of a network that the gateway serves; undefined for other families and where it is not configured. */
function evmAt({ chains }: Config, { chain, network }: NetworkName): EvmSettings | undefined {
  const settings: ChainSettings | undefined = Object.hasOwn(chains, chain)
    ? chains[chain]
    : undefined
  if (settings?.kind !== 'evm') return undefined
  return Object.hasOwn(settings.networks, network) ? settings : undefined
}

/** A database that does not answer must not keep a reload, and those behind it, waiting. */
const within = <result>(ms: number, work: Promise<result>): Promise<result> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`The reload took longer than ${ms / 1000} s.`)),
      ms,
    )
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
