// The EVM networks of a process: nodes, canonical chain, cache, streams and filters of each. Hundreds may be configured, so
// a network that nothing uses has no connections to its nodes.

import type { Pool } from '../chains/evm/pool/pool-types.ts'
import type { NodeStatus } from '../chains/nodes/status.ts'
import type { Network } from '../gateway/network.ts'
import type { Answer } from '../gateway/rpc/answer.ts'
import type { Streams } from '../gateway/streams/feed-streams.ts'
import { createSession } from '../gateway/streams/session.ts'
import type { UsageDelta } from '../gateway/usage/usage.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import type { Config } from './config/schema.ts'
import type { EvmSettings } from './config/sections/chains.ts'
import { evmNodesOf } from './evm-nodes.ts'
import { type FilterCall, filterGone } from './filter-peers.ts'
import { createOpen, type Opened, type OpenOptions, pathOf, stopNetwork } from './open-network.ts'

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
export function openNetworks(config: Config, options: OpenOptions): Networks {
  const { env, clock, spill } = options
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
  const open = createOpen(config, { ...options, notifySent })

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

const drainPollMs = 20

const keep = (network: Network): KeptNetwork => ({ network, stop: network.hold() })
