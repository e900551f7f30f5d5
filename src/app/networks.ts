// The EVM networks of a process: nodes, canonical chain, cache, streams and filters of each. Hundreds may be configured, so
// a network that nothing uses has no connections to its nodes.

import { type Canonical, createCanonical } from '../chains/evm/canonical/canonical.ts'
import { type ChangeablePool, createPool } from '../chains/evm/pool/pool.ts'
import type { Pool } from '../chains/evm/pool/pool-types.ts'
import type { NodeStatus } from '../chains/nodes/status.ts'
import { createNetwork, type Network, type RemoteFilter } from '../gateway/network.ts'
import { createRest } from '../gateway/rest.ts'
import type { Answer } from '../gateway/rpc/answer.ts'
import { createStreams, type Streams } from '../gateway/streams/feed-streams.ts'
import { createFilterBudget } from '../gateway/streams/filter-budget.ts'
import { createSession } from '../gateway/streams/session.ts'
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
import {
  type FilterCall,
  type FilterPeers,
  filterGone,
  slotOfFilter,
  tagIds,
} from './filter-peers.ts'
import { traceNetwork, tracePool } from './telemetry/traced-networks.ts'

/** The EVM networks of the configuration. */
export type Networks = {
  /** Those of the gateway by the first two segments of their address: `/c/mainnet`. */
  byPath: ReadonlyMap<string, Network>
  /** What they push and gather, by the same paths. */
  streams: ReadonlyMap<string, Streams>
  /** The nodes of a network, connected until `stop` of the result; undefined when it is not configured. */
  keep(chain: string, network: string): KeptNetwork | undefined
  /** Called for every transaction that was sent to nodes, with the nodes; returns the unsubscriber. */
  onSent(listener: OnSent): () => void
  /** A transaction was sent to the nodes of a network outside of the gateway. */
  notifySent: OnSent
  /** For `/status`: chain, network, nodes, and with the connections by path what is open. */
  status(connections?: ReadonlyMap<string, number>): Record<string, Record<string, NetworkStatus>>
  takeUsage(): UsageDelta[]
  /** Answers a call of a filter of this process that another process received. */
  callFilter(call: FilterCall): Promise<Answer>
  /** Opens the nodes of a network without serving it yet. */
  prepare(at: NetworkName, settings: EvmSettings): PreparedNetwork
  /** Uses other nodes in a network, which itself stays. */
  changeNodes(at: NetworkName, settings: EvmSettings): Promise<void>
  /** Serves a network no longer; undefined where there is none. */
  remove(at: NetworkName): RetiredNetwork | undefined
  stop(): Promise<void>
}

/** A network whose nodes are open and which is not served yet. */
export type PreparedNetwork = {
  keep(): KeptNetwork
  /** Serves it from now on. What was served under its name until then is returned. */
  serve(): RetiredNetwork | undefined
  stop(): Promise<void>
}

/** A network that no new call reaches. */
export type RetiredNetwork = {
  network: Network
  /** Stops it when its calls have ended, or the time of a call is over. */
  drain(): Promise<void>
}

type OnSent = (hash: string, pool: Pool) => void

/** A network whose nodes stay connected. */
export type KeptNetwork = { network: Network; stop(): void }

/** What `/status` says of the nodes of a network, the same for every family. */
export type NodesStatus = {
  /** `idle` while its nodes are not connected, because nothing uses the network. */
  state: 'active' | 'idle'
  chain_id: number | string | null
  head: number | null
  upstreams: readonly NodeStatus[]
}

/** What `/status` says of a network of the gateway. */
export type NetworkStatus = NodesStatus & {
  cache_bytes: number
  /** Open WebSocket streams and the last block delivered to clients; null without clients. */
  streams: {
    connections: number
    subscriptions: number
    filters: number
    notifications: number
    head: number | null
  }
}

/**
 * Opens the configured EVM networks. Nodes are connected at the first use of their network, and disconnected when it
 * was not used for a while. The service starts without unreachable nodes.
 */
export function openNetworks(
  config: Config,
  options: {
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
  },
): Networks {
  const { env, log, clock, spill, peers, tracing, onReorganized } = options
  // Filter ids carry the process, so that any process can pass a call on to the one that holds the
  // filter.
  const ids = peers ? tagIds(options.ids, peers.slot) : options.ids
  const byPath = new Map<string, Network>()
  const streams = new Map<string, Streams>()
  const opened = new Map<string, Opened>()
  const draining = new Set<Promise<void>>()
  // Transactions that this process broadcast, for the recorders of pending ones.
  const sentListeners = new Set<OnSent>()
  let isStopped = false
  const notifySent: OnSent = (hash, pool) => {
    for (const listener of sentListeners) listener(hash, pool)
  }
  const { gateway } = config
  // One budget for all networks: the limit is about the memory of the process.
  const budget = createFilterBudget({
    perKey: gateway.filter_terms_per_key,
    perOrganization: gateway.filter_terms_per_organization,
  })

  const open = (at: NetworkName, settings: EvmSettings): Opened => {
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

  // One synchronous step: a call finds either the old network or the new one, never a mixture.
  const serve = (at: NetworkName, next: Opened): RetiredNetwork | undefined => {
    const path = pathOf(at)
    const before = opened.get(path)
    opened.set(path, next)
    byPath.set(path, next.network)
    streams.set(path, next.stream)
    return before && retire(before)
  }

  const retire = (old: Opened): RetiredNetwork => ({
    network: old.network,
    drain: () => {
      const ended = drain(old).finally(() => draining.delete(ended))
      draining.add(ended)
      return ended
    },
  })

  // Calls under way end first. Their time limit is the bound, because no call lasts longer.
  const drain = async (old: Opened): Promise<void> => {
    const deadline = clock.now() + gateway.timeout_seconds * 1000
    while (old.pool.busy() > 0 && clock.now() < deadline && !isStopped)
      await clock.sleep(drainPollMs)
    spill(old.network.takeUsage())
    await stopNetwork(old)
  }

  for (const [chain, settings] of Object.entries(config.chains))
    if (settings.kind === 'evm')
      for (const network of Object.keys(settings.networks)) {
        const at = { chain, network }
        serve(at, open(at, settings))
      }
  const all = () => byPath.values()
  const streamsOf = (path: string, connections?: ReadonlyMap<string, number>) => {
    const stream = streams.get(path)
    return {
      connections: connections?.get(path) ?? 0,
      subscriptions: stream?.subscriptions.size() ?? 0,
      filters: stream?.filters.size() ?? 0,
      notifications: stream?.subscriptions.notifications() ?? 0,
      head: stream?.feed.tip()?.number ?? null,
    }
  }

  return {
    byPath,
    streams,
    keep: (chain, network) => {
      const found = byPath.get(pathOf({ chain, network }))
      return found && keep(found)
    },
    onSent: (listener) => {
      sentListeners.add(listener)
      return () => void sentListeners.delete(listener)
    },
    notifySent,
    status: (connections) => {
      const chains: Record<string, Record<string, NetworkStatus>> = {}
      for (const { chain, network, pool, view, cacheBytes, isAwake } of all()) {
        chains[chain] ??= {}
        chains[chain][network] = {
          state: isAwake() ? 'active' : 'idle',
          chain_id: pool.chainId() ?? null,
          head: view.head()?.number ?? null,
          cache_bytes: cacheBytes(),
          streams: streamsOf(`/${chain}/${network}`, connections),
          upstreams: pool.status(),
        }
      }
      return chains
    },
    takeUsage: () => [...all()].flatMap((network) => network.takeUsage()),
    callFilter: async ({ path, method, args, principal }) =>
      (await byPath.get(path)?.read(method, args, createSession(principal, 0))) ?? filterGone,
    prepare: (at, settings) => {
      const made = open(at, settings)
      return {
        keep: () => keep(made.network),
        serve: () => serve(at, made),
        stop: () => stopNetwork(made),
      }
    },
    changeNodes: async (at, settings) => {
      await opened.get(pathOf(at))?.pool.change(evmNodesOf(at, settings, env))
    },
    remove: (at) => {
      const path = pathOf(at)
      const old = opened.get(path)
      opened.delete(path)
      byPath.delete(path)
      streams.delete(path)
      return old && retire(old)
    },
    stop: async () => {
      isStopped = true
      await Promise.all([...opened.values().map(stopNetwork), ...draining])
    },
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

type Opened = {
  network: Network
  stream: Streams
  canonical: Canonical
  pool: ChangeablePool
  shared: SharedNetwork | undefined
}

const drainPollMs = 20

const keep = (network: Network): KeptNetwork => ({ network, stop: network.hold() })

const pathOf = ({ chain, network }: NetworkName): string => `/${chain}/${network}`

/** Readers first, nodes last: nothing may ask a pool that has stopped. */
async function stopNetwork({ network, stream, canonical, pool, shared }: Opened): Promise<void> {
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
