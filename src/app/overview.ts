// What is shown of chains, nodes and connections, joined from the parts of this process when it is asked. Its only state is
// the number of reorganizations since the start, which no other part counts.

import type { ChainOverview, Chains, Overview } from '../domain/context.ts'
import type { StreamedNetwork } from '../http/events/streams.ts'
import type { Sockets } from '../http/websocket/websocket.ts'
import type { Place } from './chain-openers.ts'
import type { Config } from './config/schema.ts'
import { variantsOf } from './config/sections/chains.ts'
import { follow } from './follow.ts'
import type { Networks } from './networks.ts'
import type { Wallets } from './wallets.ts'

/** What this process knows of the installation, for operations, event streams and the rollup. */
export type ProcessOverview = Overview & {
  /** Blocks of a tracked network were replaced, whichever process tracks it. */
  reorganized(network_id: number): void
  streamed(): StreamedNetwork[]
  lags(): { network_id: number; lag_blocks: number | null }[]
}

/** Joins what the parts know. */
export function createOverview(options: {
  current: () => Config
  /** Those that a test brings along. */
  places: readonly Place[]
  networks: Networks
  wallets: Pick<Wallets, 'chains' | 'nodes' | 'tracked'>
  sockets(): Sockets | undefined
  isEmbedded: boolean
  holder: string
}): ProcessOverview {
  const { current, places, networks, wallets, sockets, isEmbedded, holder } = options
  // Computed again only after a reload: it is asked with every request for an overview.
  const named = follow(current, (config) => namedNetworks(config, places))

  const reorganizations = new Map<number, number>()

  const chains = (): ChainOverview[] => {
    const tracked = new Map(wallets.tracked().map((one) => [`${one.chain}/${one.network}`, one]))
    return named().map((one) => {
      const { chain, network } = one
      const mine = tracked.get(`${chain}/${network}`)
      const served = networks.byPath.get(`/${chain}/${network}`)
      const gateway = served?.view.head()?.number ?? null
      return {
        ...one,
        network_id: mine?.network_id,
        chain_id: one.chain_id ?? served?.pool.chainId(),
        // The tracker's view of the head where there is one: it is what the lag is measured
        // against.
        node_head: mine?.head ?? gateway,
        health: mine?.health ?? 'idle',
        problem: mine?.problem ?? '',
        reorganizations: reorganizations.get(mine?.network_id ?? -1) ?? 0,
      }
    })
  }

  return {
    isEmbedded,
    chains,
    nodes: () => [
      ...networks.byPath
        .values()
        .map(({ chain, network, pool }) => ({ chain, network, upstreams: pool.status() })),
      ...wallets.nodes(),
    ],
    gateways: () =>
      [...networks.byPath].map(([path, { chain, network, counters, cacheBytes }]) => {
        const stream = networks.streams.get(path)
        const { hits, misses } = counters.cache()
        return {
          ...{ chain, network },
          websocket_count: sockets()?.connections().get(path) ?? 0,
          subscription_count: stream?.subscriptions.size() ?? 0,
          filter_count: stream?.filters.size() ?? 0,
          cache_bytes: cacheBytes(),
          cache_hit_count: hits,
          cache_miss_count: misses,
        }
      }),
    webSockets: (organization_id) => sockets()?.clients(organization_id) ?? [],
    holder,
    reorganized: (network_id) => {
      reorganizations.set(network_id, (reorganizations.get(network_id) ?? 0) + 1)
    },
    streamed: () =>
      named().map(({ chain, network, isDefault }) => ({
        ...{ chain, network, at: isDefault ? chain : `${chain}/${network}` },
        network_id: trackedId(wallets.chains, chain, network),
      })),
    lags: () =>
      wallets.tracked().map(({ network_id, head, block_number }) => ({
        network_id,
        lag_blocks:
          head === null || block_number === null ? null : Math.max(0, head - block_number),
      })),
  }
}

const trackedId = (chains: Chains, chain: string, network: string) =>
  chains.find(chain, network)?.network_id

type Named = Pick<ChainOverview, 'chain' | 'network' | 'isDefault' | 'kind' | 'variant'> &
  Partial<Pick<ChainOverview, 'chain_id'>>

/** The networks of the configuration, and those that a test brings along. */
function namedNetworks(config: Config, places: readonly Place[]): Named[] {
  const configured = Object.entries(config.chains).flatMap(([chain, settings]) =>
    Object.keys(settings.networks).map((network) => ({
      ...{ chain, network, isDefault: network === settings.default_network },
      ...{ kind: settings.kind, variant: variantsOf(chain, settings).join('') },
      chain_id: settings.kind === 'evm' ? settings.networks[network]?.chain_id : undefined,
    })),
  )
  const known = new Set(configured.map(({ chain, network }) => `${chain}/${network}`))
  const others = places
    .filter(({ chain, network }) => !known.has(`${chain}/${network}`))
    .map(({ chain, network, isDefault, service }) => ({
      ...{ chain, network, isDefault, kind: service, variant: service.toUpperCase() },
    }))
  return [...configured, ...others]
}
