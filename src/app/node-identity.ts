import { createEvmChain } from '../chains/evm/chain.ts'
import { createPool } from '../chains/evm/pool/pool.ts'
import type { Clock } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import { openChain } from './chain-openers.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import type { ChainSettings } from './config/sections/chains.ts'
import { evmNodesOf } from './evm-nodes.ts'

/** A configured network with the settings of its chain. */
export type ConfiguredNetwork = NetworkName & { settings: ChainSettings; isShared: boolean }

/** All networks of a configuration, in its order. */
export const networksOf = ({ chains }: Pick<Config, 'chains'>): ConfiguredNetwork[] =>
  Object.entries(chains).flatMap(([chain, settings]) =>
    Object.keys(settings.networks).map((network) => ({
      ...{ chain, network, settings, isShared: settings.shared },
    })),
  )

/**
 * Asks the nodes of a network which chain they are on, with connections of its own that are closed afterwards: a
 * network that is idle stays idle.
 */
export async function askIdentity(
  { chain: name, network, settings }: ConfiguredNetwork,
  { env, clock }: { env: Env; clock: Clock },
  signal: AbortSignal,
): Promise<string> {
  const at = { chain: name, network }
  if (settings.kind === 'evm') {
    const { prefix } = settings
    const { chain_id } = settings.networks[network]!
    const pool = createPool({
      ...{ network: `${name}/${network}`, prefix, clock, log: silentLog },
      ...(chain_id !== undefined && { chainId: chain_id }),
      upstreams: evmNodesOf(at, settings, env),
    })
    try {
      return await createEvmChain({ pool, prefix, clock }).identity(signal)
    } finally {
      await pool.stop()
    }
  }
  // No other family uses the nodes of the gateway.
  const networks = { keep: () => undefined, notifySent: () => {} }
  const chain = await openChain(settings, at, { env, clock, log: silentLog, networks })
  try {
    return await chain.identity(signal)
  } finally {
    await chain.stop()
  }
}

const schemes = { evm: 'eip155', ton: 'ton', sui: 'sui', polkadot: 'polkadot' } as const

/** Whether the settings of a network allow its nodes to have this identity. */
export function mayHaveIdentity(
  { settings, network }: Pick<ConfiguredNetwork, 'settings' | 'network'>,
  identity: string,
): boolean {
  const scheme = schemes[settings.kind]
  if (!identity.startsWith(`${scheme}:`)) return false
  const { chain_id } = settings.networks[network] ?? {}
  // Sui abbreviates the id in the configuration by other digits than in the identity.
  if (chain_id === undefined || settings.kind === 'sui') return true
  const id = settings.kind === 'polkadot' ? String(chain_id).slice(2) : chain_id
  return `${identity}:`.startsWith(`${scheme}:${id}:`)
}

/**
 * Whether two networks may have the same nodes, so that it is worth a request to ask them. EVM networks without a chain
 * id are compared by the addresses of their nodes only: hundreds may be configured, and none is asked before its first use.
 */
export function mayBeSame(one: ConfiguredNetwork, other: ConfiguredNetwork): boolean {
  if (one.settings.kind !== other.settings.kind || one.isShared || other.isShared) return false
  const [a, b] = [one.settings.networks[one.network]!, other.settings.networks[other.network]!]
  if (a.chain_id !== undefined && b.chain_id !== undefined) return a.chain_id === b.chain_id
  if (one.settings.kind !== 'evm') return true
  return a.upstreams.some(({ url }) => b.upstreams.some((node) => node.url === url))
}
