// The well-known EVM chains, for defaults and proposals. The table comes from `viem/chains` (`npm run generate`). It is
// imported where it is needed only, because it is large.

import rows from './known-chains.json' with { type: 'json' }

/** A well-known network. */
export type KnownChain = {
  chain_id: number
  /** Its name in the configuration, and that of its network. */
  chain: string
  network: string
  title: string
  symbol: string
  /** Undefined where it is not known. */
  blockMs: number | undefined
  /** `header` for chains that hash their blocks differently. */
  stack: 'plain' | 'op' | 'arbitrum' | 'zksync' | 'celo' | 'header'
  explorer: string | undefined
}

type Row = [number, string, string, string, string, number, string, string]

const toChain = (row: Row): KnownChain => {
  const [chain_id, chain, network, title, symbol, blockMs, stack, explorer] = row
  return {
    ...{ chain_id, chain, network, title, symbol },
    blockMs: blockMs || undefined,
    stack: (stack || 'plain') as KnownChain['stack'],
    explorer: explorer || undefined,
  }
}

const find = (matches: (row: Row) => boolean): KnownChain | undefined => {
  const row = (rows as Row[]).find(matches)
  return row && toChain(row)
}

/** The network with this chain id. */
export const findKnownChain = (chain_id: number): KnownChain | undefined =>
  find(([id]) => id === chain_id)

/** The usual time between blocks in milliseconds. */
export const blockTimeOf = (chain_id: number): number | undefined =>
  findKnownChain(chain_id)?.blockMs

/** The names of all known chains. */
export const knownChainNames = (): ReadonlySet<string> =>
  new Set((rows as Row[]).map(([, chain]) => chain))

// The time after which exchanges usually accept a deposit on a chain without fast finality: 12 blocks of Ethereum.
const settledMs = 144_000
const mostConfirmations = 1_000

/** How many confirmations are proposed for a chain; undefined where its block time is not known. */
export const proposedConfirmations = ({ blockMs }: KnownChain): number | undefined =>
  blockMs === undefined
    ? undefined
    : Math.min(mostConfirmations, Math.max(1, Math.ceil(settledMs / blockMs)))

// Their state syncs cannot be proved (see `block/coin-logs.ts`).
const polygonIds: ReadonlySet<number> = new Set([137, 80_002])

// Transactions of a type of their own (morph-l2/go-ethereum, core/types/morph_tx.go).
const morphIds: ReadonlySet<number> = new Set([2_710, 2_810, 2_818])

// The coin of Celo is a token as well (celo-org/op-geth, contracts/addresses/addresses.go: one address, but for Alfajores).
const celoCoin = '0x471ece3750da237f93b8e339c536989b8978a438'
const alfajores = { chain_id: 44_787, coin: '0xf194afdf50b03e69bd7d057c1aa9e10c9954e4c9' }

/** Settings of a network that differ from the defaults. */
export type ProposedSettings = {
  proof?: 'bloom'
  unproven_types?: readonly number[]
  coin_contract?: string
}

/**
 * The settings with which blocks of the network are proved as far as possible and all movements of its coin are seen;
 * see `docs/chains.md`.
 */
export const proposedSettings = ({ chain_id, stack }: KnownChain): ProposedSettings => {
  if (stack === 'arbitrum') return { unproven_types: [0x64, 0x65, 0x66, 0x68, 0x69, 0x6a] }
  if (polygonIds.has(chain_id) || morphIds.has(chain_id)) return { unproven_types: [0x7f] }
  if (stack === 'celo') {
    const coin_contract = chain_id === alfajores.chain_id ? alfajores.coin : celoCoin
    return { unproven_types: [0x7b], coin_contract }
  }
  // The block hash is not that of an Ethereum header.
  if (stack === 'zksync' || stack === 'header') return { proof: 'bloom' }
  return {}
}
