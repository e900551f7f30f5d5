import { type Canonical, createCanonical } from '../chains/evm/canonical/canonical.ts'
import { createPool } from '../chains/evm/pool/pool.ts'
import type { Pool } from '../chains/evm/pool/pool-types.ts'
import type { NodeStatus } from '../chains/nodes/status.ts'
import { createNetwork, type Network } from '../gateway/network.ts'
import { createStreams, type Streams } from '../gateway/streams/feed-streams.ts'
import { createFilterBudget } from '../gateway/streams/filter-budget.ts'
import type { UsageDelta } from '../gateway/usage/usage.ts'
import { textFrame } from '../http/websocket/frame.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { resolveSecret } from './config/secrets.ts'
import type { EvmSettings } from './config/sections/chains.ts'

/** The EVM networks of the configuration. */
export type Networks = {
  /** Those of the gateway by the first two segments of their address: `/c/mainnet`. */
  byPath: ReadonlyMap<string, Network>
  /** What they push and gather, by the same paths. */
  streams: ReadonlyMap<string, Streams>
  /** The nodes of a network; undefined when it is not configured. */
  poolOf(chain: string, network: string): Pool | undefined
  /** The canonical chain of a network; undefined when it is not configured. */
  canonicalOf(chain: string, network: string): Canonical | undefined
  /** Called for every transaction that was sent to nodes, with the node. */
  onSent(listener: OnSent): void
  /** A transaction was sent to the nodes of a network outside of the gateway. */
  notifySent: OnSent
  /** For `/status`: chain, network, nodes, and with the connections by path what is open. */
  status(connections?: ReadonlyMap<string, number>): Record<string, Record<string, NetworkStatus>>
  takeUsage(): UsageDelta[]
  stop(): Promise<void>
}

type OnSent = (hash: string, pool: Pool) => void

/** What `/status` says of a network. */
export type NetworkStatus = {
  chain_id: number | null
  head: number | null
  cache_bytes: number
  /** Open WebSocket streams and the last block delivered to clients; null without clients. */
  streams: {
    connections: number
    subscriptions: number
    filters: number
    notifications: number
    head: number | null
  }
  upstreams: NodeStatus[]
}

/** Opens the pools of the configured EVM chains. The service starts without unreachable nodes. */
export function openNetworks(
  config: Config,
  options: { env: Env; log: Log; clock: Clock; ids: Ids; spill(deltas: UsageDelta[]): void },
): Networks {
  const { env, log, clock, ids, spill } = options
  const byPath = new Map<string, Network>()
  const streams = new Map<string, Streams>()
  const sentListeners: OnSent[] = []
  const notifySent: OnSent = (hash, pool) => {
    for (const listener of sentListeners) listener(hash, pool)
  }
  const { gateway } = config
  // One budget for all networks: the limit is about the memory of the process.
  const budget = createFilterBudget({
    perKey: gateway.filter_terms_per_key,
    perOrganization: gateway.filter_terms_per_organization,
  })

  const open = (chain: string, network: string, { prefix, networks }: EvmSettings) => {
    const { chain_id, upstreams } = networks[network]!
    const key = `chains.${chain}.networks.${network}.upstreams`
    const pool = createPool({
      network: `${chain}/${network}`,
      prefix,
      ...(chain_id !== undefined && { chainId: chain_id }),
      upstreams: upstreams.map((upstream) => ({
        ...(upstream.name !== undefined && { name: upstream.name }),
        url: resolveSecret(upstream.url, { env, key }),
        headers: Object.fromEntries(
          Object.entries(upstream.headers).map(([name, value]) => [
            name,
            resolveSecret(value, { env, key }),
          ]),
        ),
        priority: upstream.priority,
        ...(upstream.archive !== undefined && { archive: upstream.archive }),
        ...(upstream.rate_limit_per_second !== undefined && {
          requests_per_second: upstream.rate_limit_per_second,
        }),
      })),
      clock,
      log,
    })
    const canonical = createCanonical({
      pool,
      prefix,
      clock,
      log,
      finalityDepth: gateway.finality_depth,
    })
    const stream = createStreams({
      pool,
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
    const made = createNetwork({
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
      onSent: (hash) => notifySent(hash, pool),
      spill,
    })
    byPath.set(`/${chain}/${network}`, made)
    streams.set(`/${chain}/${network}`, stream)
  }
  for (const [name, chain] of Object.entries(config.chains))
    if (chain.kind === 'evm')
      for (const network of Object.keys(chain.networks)) open(name, network, chain)
  const all = [...byPath.values()]
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
    poolOf: (chain, network) => byPath.get(`/${chain}/${network}`)?.pool,
    canonicalOf: (chain, network) => byPath.get(`/${chain}/${network}`)?.view,
    onSent: (listener) => {
      sentListeners.push(listener)
    },
    notifySent,
    status: (connections) => {
      const chains: Record<string, Record<string, NetworkStatus>> = {}
      for (const { chain, network, pool, view, cacheBytes } of all) {
        chains[chain] ??= {}
        chains[chain][network] = {
          chain_id: pool.chainId() ?? null,
          head: view.head()?.number ?? null,
          cache_bytes: cacheBytes(),
          streams: streamsOf(`/${chain}/${network}`, connections),
          upstreams: pool.status(),
        }
      }
      return chains
    },
    takeUsage: () => all.flatMap((network) => network.takeUsage()),
    // Readers first, nodes last: nothing may ask a pool that has stopped.
    stop: async () => {
      for (const stream of streams.values()) stream.stop()
      for (const network of all) {
        network.stop()
        network.view.stop()
      }
      await Promise.all(all.map(({ pool }) => pool.stop()))
    },
  }
}
