// Opens one EVM network: its pool, canonical chain, streams and gateway, and what connects them. Nothing is served yet.

import { type Canonical, createCanonical } from '../chains/evm/canonical/canonical.ts'
import { type ChangeablePool, createPool } from '../chains/evm/pool/pool.ts'
import type { Pool } from '../chains/evm/pool/pool-types.ts'
import type { NodeStatus } from '../chains/nodes/status.ts'
import { createNetwork, type Network, type RemoteFilter } from '../gateway/network.ts'
import { createRest } from '../gateway/rest.ts'
import { createStreams, type Streams } from '../gateway/streams/feed-streams.ts'
import { createFilterBudget } from '../gateway/streams/filter-budget.ts'
import type { UsageDelta } from '../gateway/usage/usage.ts'
import { textFrame } from '../http/websocket/frame.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Tracing } from '../lib/tracing.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import type { NetworkSharing, SharedNetwork } from './cluster/network-sharing.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import type { EvmSettings } from './config/sections/chains.ts'
import { evmNodesOf } from './evm-nodes.ts'
import { type FilterPeers, slotOfFilter, tagIds } from './filter-peers.ts'
import { traceNetwork, tracePool } from './telemetry/traced-networks.ts'

/** A network with all its parts. */
export type Opened = {
  network: Network
  stream: Streams
  canonical: Canonical
  pool: ChangeablePool
  shared: SharedNetwork | undefined
}

/** What networks are opened with. */
export type OpenOptions = {
  env: Env
  log: Log
  clock: Clock
  ids: Ids
  tracing?: Tracing | undefined
  spill(deltas: UsageDelta[]): void
  /** Other processes that serve the same networks on the same port. */
  peers?: FilterPeers | undefined
  /** Lets one of them probe the nodes and read the blocks for all. */
  sharing?: NetworkSharing | undefined
  /** Blocks of a network that is awake were replaced. */
  onReorganized?(at: NetworkName, blocks: { from_block: number; to_block: number }): void
}

/** Makes the function that opens networks. */
export function createOpen(
  config: Config,
  options: OpenOptions & { notifySent(hash: string, pool: Pool): void },
): (at: NetworkName, settings: EvmSettings) => Opened {
  const { env, log, clock, spill, peers, tracing, onReorganized, notifySent } = options
  // Filter ids carry the process, so that any process can pass a call on to the one that holds the
  // filter.
  const ids = peers ? tagIds(options.ids, peers.slot) : options.ids
  const { gateway } = config
  // One budget for all networks: the limit is about the memory of the process.
  const budget = createFilterBudget({
    perKey: gateway.filter_terms_per_key,
    perOrganization: gateway.filter_terms_per_organization,
  })

  return (at, settings) => {
    const { chain, network } = at
    const { prefix, networks } = settings
    const { chain_id } = networks[network]!
    const shared = options.sharing?.open(pathOf(at))
    const plain = createPool({
      network: `${chain}/${network}`,
      prefix,
      ...(chain_id !== undefined && { chainId: chain_id }),
      upstreams: evmNodesOf(at, settings, env),
      clock,
      log,
      // Loaded on use: the table of known chains is large.
      blockTimeOf: async (id) => (await import('../chains/evm/known-chains.ts')).blockTimeOf(id),
      // No node is connected before the first call, so that hundreds of networks can be configured.
      isAsleep: true,
      sharing: shared,
    })
    const pool = tracing ? tracePool(plain, tracing, `${chain}/${network}`) : plain
    // Blocks and their logs are the same for all processes. Calls of clients are not shared: a way through two more
    // processes costs more CPU than a call to a node (docs/scale.md).
    const blocks = shared ? { ...pool, request: shared.share(pool.request) } : pool
    const depth = gateway.finality_depth
    const canonical = createCanonical({
      ...{ pool: blocks, prefix, clock, log },
      ...(depth === undefined ? { readsFinalized: true } : { finalityDepth: depth }),
    })
    pool.compareWith(canonical.head)
    canonical.onChange(({ removed }) => {
      const [first, last] = [removed[0], removed.at(-1)]
      if (first && last) onReorganized?.(at, { from_block: first.number, to_block: last.number })
    })
    const stream = createStreams({
      pool: blocks,
      canonical,
      prefix,
      clock,
      log,
      ids,
      encode: textFrame,
      subscriptionsPerKey: gateway.subscriptions_per_key,
      filtersPerKey: gateway.filters_per_key,
      budget,
    })
    // Decides when the nodes are disconnected; open subscriptions and filters keep them.
    const rest = createRest({
      clock,
      afterMs: gateway.sleep_after_minutes * 60_000,
      isBusy: () => stream.subscriptions.size() + stream.filters.size() > 0,
      wake: async () => {
        pool.wake()
        shared?.join()
        await firstHead(canonical, pool, clock)
      },
      sleep: () => {
        log.info({ chain, network }, 'the network is not used: its nodes are disconnected')
        shared?.leave()
        canonical.reset()
        made.cache?.release()
        void pool.sleep()
      },
    })
    const untraced = createNetwork({
      chain,
      network,
      prefix,
      pool,
      canonical,
      allowedMethods: gateway.allowed_methods,
      cacheBytes: gateway.cache_bytes,
      maxLogRange: gateway.logs_max_range,
      timeoutMs: gateway.timeout_seconds * 1000,
      now: clock.now,
      filters: stream.filters.dispatch,
      filterOf: stream.filters.filterOf,
      ...(peers && { filterElsewhere: (id: unknown) => remoteFilter(peers, pathOf(at), id) }),
      onSent: (hash) => notifySent(hash, pool),
      spill,
      rest,
    })
    const made = tracing ? traceNetwork(untraced, tracing) : untraced
    return { network: made, stream, canonical, pool, shared }
  }
}

/** How to call a filter that another process holds. */
const remoteFilter = (
  { slot, forward }: FilterPeers,
  path: string,
  id: unknown,
): RemoteFilter | undefined => {
  const holder = slotOfFilter(id)
  if (holder === undefined || holder === slot) return undefined
  return (method, args, { credential_id, organization_id, role }) =>
    forward(holder, { path, method, args, principal: { credential_id, organization_id, role } })
}

/** The first two segments of the address of a network. */
export const pathOf = ({ chain, network }: NetworkName): string => `/${chain}/${network}`

/** Readers first, nodes last: nothing may ask a pool that has stopped. */
export async function stopNetwork({
  network,
  stream,
  canonical,
  pool,
  shared,
}: Opened): Promise<void> {
  shared?.stop()
  stream.stop()
  network.stop()
  canonical.stop()
  await pool.stop()
}

// A connection and one probe take less. After that the call itself finds out that there is no node.
const wakeTimeoutMs = 5_000
const wakePollMs = 10

/** Waits until a node has shown its head, or none of them can be used. */
async function firstHead(canonical: Canonical, pool: Pool, clock: Clock): Promise<void> {
  const deadline = clock.now() + wakeTimeoutMs
  while (!canonical.head() && clock.now() < deadline) {
    if (pool.status().every(({ state }) => hopeless.has(state))) return
    await clock.sleep(wakePollMs)
  }
}

const hopeless: ReadonlySet<NodeStatus['state']> = new Set(['unreachable', 'wrong_chain', 'idle'])
