import type { Chain } from '../chains/chain.ts'
import { createEvmChain } from '../chains/evm/chain.ts'
import { toHex } from '../chains/hex.ts'
import type { WalletService } from '../contract/variant.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { resolveSecret } from './config/secrets.ts'
import type { Networks } from './networks.ts'

/** What a chain is opened with. */
export type OpenerTools = {
  env: Env
  clock: Clock
  log: Log
  networks: Pick<Networks, 'poolOf' | 'canonicalOf' | 'notifySent'>
}

/** Opens the chain of one wallet service on its default network; undefined when it is not configured. */
export type Opener = (
  config: Config,
  tools: OpenerTools,
) => Promise<{ network: string; chain: Chain } | undefined>

/** How the chain of each wallet service is opened. A service without an opener is not offered. */
export type Openers = { readonly [service in WalletService]?: Opener }

/** Variant C uses the pool of nodes and the canonical chain of its gateway. */
const openC: Opener = async (config, { networks, clock }) => {
  const { c } = config.chains
  const pool = c && networks.poolOf('c', c.default_network)
  if (!c || !pool) return undefined
  const { proof, unproven_types, verify_senders, multicall } = c.networks[c.default_network]!
  const canonical = networks.canonicalOf('c', c.default_network)
  const chain = createEvmChain({
    pool,
    ...(canonical && { canonical }),
    prefix: c.prefix,
    clock,
    proof,
    unproven_types,
    verify_senders,
    multicall,
    onBroadcast: (_raw, hash) => networks.notifySent(toHex(hash), pool),
  })
  return { network: c.default_network, chain }
}

// The libraries of the other families take up to half a second to load, so each family is imported only
// where its chain is configured.

const openP: Opener = async (config, { env, clock, log }) => {
  const { p } = config.chains
  const network = p?.networks[p.default_network]
  if (!p || !network) return undefined
  const { createPolkadotChain } = await import('../chains/polkadot/chain.ts')
  const { chain_id, ss58_prefix, upstreams } = network
  const resolve = secretsOf(env, `chains.p.networks.${p.default_network}.upstreams`)
  const chain = createPolkadotChain({
    clock,
    log,
    ...(chain_id !== undefined && { genesis: chain_id }),
    ...(ss58_prefix !== undefined && { ss58_prefix }),
    upstreams: upstreams.map((upstream) => ({
      ...nodeOf(upstream, resolve),
      ...(upstream.archive !== undefined && { archive: upstream.archive }),
    })),
  })
  return { network: p.default_network, chain }
}

const openS: Opener = async (config, { env, clock, log }) => {
  const { s } = config.chains
  const network = s?.networks[s.default_network]
  if (!s || !network) return undefined
  const { createSuiChain } = await import('../chains/sui/chain.ts')
  const resolve = secretsOf(env, `chains.s.networks.${s.default_network}.upstreams`)
  const { verification, trusted_checkpoint } = network
  const [number, digest] = trusted_checkpoint?.split(':') ?? []
  const chain = createSuiChain({
    clock,
    log,
    verification,
    ...(digest !== undefined && { trusted: { number: Number(number), digest } }),
    ...(network.chain_id !== undefined && { chainId: network.chain_id }),
    upstreams: network.upstreams.map((upstream) => ({
      ...nodeOf(upstream, resolve),
      transport: upstream.transport,
      ...(upstream.archive !== undefined && { archive: upstream.archive }),
    })),
  })
  return { network: s.default_network, chain }
}

/** The nodes of variant T offer the toncenter HTTP API, and its version 3 as an index where they have it. */
const openT: Opener = async (config, { env, clock, log }) => {
  const { t } = config.chains
  const network = t?.networks[t.default_network]
  if (!t || !network) return undefined
  const { createTonChain } = await import('../chains/ton/chain.ts')
  const resolve = secretsOf(env, `chains.t.networks.${t.default_network}.upstreams`)
  const chain = createTonChain({
    ...(network.chain_id !== undefined && { globalId: network.chain_id }),
    clock,
    log,
    upstreams: network.upstreams.map((upstream) => ({
      ...nodeOf(upstream, resolve),
      v3: upstream.v3,
      ...(upstream.v3_url !== undefined && { v3_url: resolve(upstream.v3_url) }),
    })),
  })
  return { network: t.default_network, chain }
}

/** The openers that the service uses. */
export const systemOpeners: Openers = { c: openC, p: openP, s: openS, t: openT }

const secretsOf = (env: Env, key: string) => (value: string) => resolveSecret(value, { env, key })

/** The settings that a node of every family has. */
const nodeOf = (
  upstream: {
    url: string
    name?: string
    headers: Readonly<Record<string, string>>
    priority: number
    rate_limit_per_second?: number
  },
  resolve: (value: string) => string,
) => ({
  url: resolve(upstream.url),
  priority: upstream.priority,
  headers: Object.fromEntries(
    Object.entries(upstream.headers).map(([name, value]) => [name, resolve(value)]),
  ),
  ...(upstream.name !== undefined && { name: upstream.name }),
  ...(upstream.rate_limit_per_second !== undefined && {
    requests_per_second: upstream.rate_limit_per_second,
  }),
})
