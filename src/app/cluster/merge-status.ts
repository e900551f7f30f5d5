import type { NetworkStatus, NodesStatus } from '../networks.ts'

/** What one process says of itself to the operator. */
export type ProcessStatus = { name: string; status: Record<string, unknown> }

type Chain = Record<string, unknown> & { nodes?: Record<string, Nodes> }

// Only networks of the gateway have a cache and streams.
type Nodes = NodesStatus & Partial<NetworkStatus>

/** The status of several processes as that of one service: each part from where it runs, counts added up. */
export function mergeStatus(processes: readonly ProcessStatus[]): Record<string, unknown> {
  const merged: Record<string, unknown> = {}
  const chains: Record<string, Chain> = {}
  for (const { status } of processes) {
    const { chains: own, ...rest } = status as { chains?: Record<string, Chain> }
    // What all processes report alike is taken from the first that has it.
    for (const [key, value] of Object.entries(rest)) merged[key] ??= value
    for (const [tag, chain] of Object.entries(own ?? {}))
      chains[tag] = mergeChain(chains[tag], chain)
  }
  return { ...merged, chains }
}

function mergeChain(known: Chain | undefined, chain: Chain): Chain {
  if (!known) return chain
  const nodes = { ...known.nodes }
  for (const [network, status] of Object.entries(chain.nodes ?? {}))
    nodes[network] = mergeNetwork(nodes[network], status)
  return { ...chain, ...known, ...(Object.keys(nodes).length > 0 && { nodes }) }
}

/** One process may use a network that is idle in another. */
function mergeNetwork(known: Nodes | undefined, next: Nodes): Nodes {
  if (!known) return next
  const shown = known.state === 'active' ? known : next
  return {
    ...shown,
    chain_id: known.chain_id ?? next.chain_id,
    head: highest(known.head, next.head),
    ...(known.streams &&
      next.streams && {
        cache_bytes: (known.cache_bytes ?? 0) + (next.cache_bytes ?? 0),
        streams: mergeStreams(known.streams, next.streams),
      }),
  }
}

const mergeStreams = (
  known: NetworkStatus['streams'],
  next: NetworkStatus['streams'],
): NetworkStatus['streams'] => ({
  connections: known.connections + next.connections,
  subscriptions: known.subscriptions + next.subscriptions,
  filters: known.filters + next.filters,
  notifications: known.notifications + next.notifications,
  head: highest(known.head, next.head),
})

const highest = (one: number | null, other: number | null): number | null =>
  one === null ? other : other === null ? one : Math.max(one, other)
