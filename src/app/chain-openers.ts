// From the configuration to chains: which networks there are, and how a chain of each family is opened. Families other than
// EVM are loaded on use.

import type { AddressRules, Chain } from '../chains/chain.ts'
import { createEvmChain } from '../chains/evm/chain.ts'
import { toHex } from '../chains/hex.ts'
import { familyAt } from '../chains/registry.ts'
import type { WalletService } from '../contract/variant.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { NetworkName } from '../storage/tracking/networks.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { resolveSecret } from './config/secrets.ts'
import { type ChainSettings, variantServices, variantsOf } from './config/sections/chains.ts'
import type { Networks } from './networks.ts'

/** What a chain is opened with. */
export type OpenerTools = {
  env: Env
  clock: Clock
  log: Log
  networks: Pick<Networks, 'keep' | 'notifySent'>
}

/** One network of one chain on which wallets can be tracked. */
export type Place = {
  /** Name of the chain in addresses. */
  chain: string
  network: string
  /** The wallet service whose operations the chain offers. */
  service: WalletService
  /** The network that addresses without a network mean. */
  isDefault: boolean
  /** Letters of the variants that the chain offers. */
  variants?: string
  /** Whether the default network too is tracked only from the first registration on. */
  isLazy?: boolean
  /** Whether its nodes may be those of another place. */
  isShared?: boolean
  /** The rules are those that the chain had before, for the time until its nodes answer. */
  open(rules?: AddressRules): Promise<Chain>
}

/** The places of a configuration where wallets can be tracked. Nothing is opened yet. */
export const placesOf = (config: Pick<Config, 'chains'>, tools: OpenerTools): Place[] =>
  Object.entries(config.chains).flatMap(([chain, settings]) => {
    const service = walletServiceOf(chain, settings)
    if (service === undefined) return []
    return Object.keys(settings.networks).map((network) => ({
      ...{ chain, network, service, isDefault: network === settings.default_network },
      ...{ variants: variantsOf(chain, settings).join(''), isShared: settings.shared },
      // Hundreds of chains may be configured: one without wallets costs nothing. Those with the names of the
      // specification are tracked from the start.
      isLazy: chain !== service,
      open: async (rules) =>
        familyAt(await openChain(settings, { chain, network, rules }, tools), {
          chain,
          ...(network !== settings.default_network && { network }),
        }),
    }))
  })

/** The wallet service of a chain; undefined where it offers only chain queries. */
export const walletServiceOf = (name: string, settings: ChainSettings): WalletService | undefined =>
  variantsOf(name, settings)
    .map((variant) => variantServices[variant])
    .find((service) => service !== 'q')

// The libraries of the families other than EVM take up to half a second to load, so each family is imported only
// where its chain is opened.
/** Opens the chain of a network, whichever operations it offers. */
export const openChain = async (
  settings: ChainSettings,
  { chain: name, network, rules }: NetworkName & { rules?: AddressRules | undefined },
  { env, clock, log, networks }: OpenerTools,
): Promise<Chain> => {
  // Secrets are resolved when the chain is opened, so that a missing one names the place in the
  // configuration.
  const resolve = secretsOf(env, `chains.${name}.networks.${network}.upstreams`)
  switch (settings.kind) {
    case 'evm': {
      // The pool of nodes and the canonical chain are those of the gateway.
      const kept = networks.keep(name, network)
      if (!kept) throw new Error(`The network ${name}/${network} is not open.`)
      const { pool, view: canonical } = kept.network
      const { proof, unproven_types, coin_contract, verify_senders, multicall } =
        settings.networks[network]!
      const chain = createEvmChain({
        pool,
        canonical,
        prefix: settings.prefix,
        clock,
        proof,
        unproven_types,
        ...(coin_contract !== undefined && { coin_contract }),
        verify_senders,
        multicall,
        onBroadcast: (_raw, hash) => networks.notifySent(toHex(hash), pool),
      })
      return {
        ...chain,
        stop: async () => {
          kept.stop()
          await chain.stop()
        },
      }
    }
    case 'polkadot': {
      const { createPolkadotChain } = await import('../chains/polkadot/chain.ts')
      const {
        chain_id,
        ss58_prefix,
        verification,
        upstreams,
        relay_upstreams,
        para_id,
        trusted_relay_block,
      } = settings.networks[network]!
      // `number:hash`, as the configuration documents it. The schema has checked the form.
      const [number, hash] = trusted_relay_block?.split(':') ?? []
      const relayKey = `chains.${name}.networks.${network}.relay_upstreams`
      return createPolkadotChain({
        clock,
        log,
        ...(chain_id !== undefined && { genesis: chain_id }),
        ...(ss58_prefix !== undefined && { ss58_prefix }),
        rules,
        verification,
        ...(hash !== undefined && { trusted: { number: Number(number), hash } }),
        paraId: para_id,
        relay: (relay_upstreams ?? []).map((one) => nodeOf(one, secretsOf(env, relayKey))),
        upstreams: upstreams.map((upstream) => ({
          ...nodeOf(upstream, resolve),
          ...(upstream.archive !== undefined && { archive: upstream.archive }),
        })),
      })
    }
    case 'sui': {
      const { createSuiChain } = await import('../chains/sui/chain.ts')
      const { chain_id, upstreams, verification, trusted_checkpoint } = settings.networks[network]!
      const [number, digest] = trusted_checkpoint?.split(':') ?? []
      return createSuiChain({
        clock,
        log,
        verification,
        ...(digest !== undefined && { trusted: { number: Number(number), digest } }),
        ...(chain_id !== undefined && { chainId: chain_id }),
        upstreams: upstreams.map((upstream) => ({
          ...nodeOf(upstream, resolve),
          transport: upstream.transport,
          ...(upstream.archive !== undefined && { archive: upstream.archive }),
        })),
      })
    }
    case 'ton': {
      // The nodes offer the toncenter HTTP API, and its version 3 as an index where they have it, or are lite servers.
      const { createTonChain } = await import('../chains/ton/chain.ts')
      const { chain_id, upstreams, verification, trusted_key_block } = settings.networks[network]!
      const [seqno, root, file] = trusted_key_block?.split(':') ?? []
      return createTonChain({
        ...(chain_id !== undefined && { globalId: chain_id }),
        ...(file !== undefined && {
          trusted: {
            ...{ workchain: -1, shard: 1n << 63n, seqno: Number(seqno) },
            root_hash: Buffer.from(root!, 'hex'),
            file_hash: Buffer.from(file, 'hex'),
          },
        }),
        rules,
        verification,
        clock,
        log,
        upstreams: upstreams.map((upstream) => ({
          ...nodeOf(upstream, resolve),
          ...(upstream.kind === 'liteserver' && { key: Buffer.from(upstream.key ?? '', 'base64') }),
          v3: upstream.v3,
          ...(upstream.v3_url !== undefined && { v3_url: resolve(upstream.v3_url) }),
        })),
      })
    }
  }
}

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
