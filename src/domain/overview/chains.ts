// What a console shows of the installation: chains, nodes, problems, counts, and a search over all chains. It uses
// storage and what the process knows (`Overview`). Only administrators see nodes and problems.

import { toTimestamp } from '../../lib/clock.ts'
import { listOpenGapCounts } from '../../storage/tracking/gaps.ts'
import { listHeads } from '../../storage/tracking/heads.ts'
import { listEvents } from '../../storage/tracking/operational-events.ts'
import type { AdminHandler } from '../context.ts'
import { presentProblem } from '../events/present.ts'

const shownProblems = 50

/** The coin of each family. Those of EVM chains have many names; all have 18 decimals. */
const coins: Readonly<Record<string, { symbol: string; decimals: number }>> = {
  evm: { symbol: '', decimals: 18 },
  ton: { symbol: 'TON', decimals: 9 },
  sui: { symbol: 'SUI', decimals: 9 },
  polkadot: { symbol: 'DOT', decimals: 10 },
}

/** Lists the networks of the installation with their heads. */
export const ListChains: AdminHandler<'ListChains'> = async ({ db, principal, overview }) => {
  const isAdmin = principal.role === 'ROLE_ADMIN'
  const chains = overview?.chains() ?? []
  const ids = chains.flatMap(({ network_id }) => network_id ?? [])
  const heads = new Map((await listHeads(db, ids)).map((head) => [head.network_id, head]))
  const gaps = isAdmin ? await listOpenGapCounts(db) : new Map<number, number>()
  // Large, and loaded where it is needed only.
  const { findKnownChain } = await import('../../chains/evm/known-chains.ts')
  return {
    chains: chains.map((one) => {
      const known = one.chain_id === undefined ? undefined : findKnownChain(one.chain_id)
      const coin = coins[one.kind] ?? { symbol: '', decimals: 0 }
      const head = one.network_id === undefined ? undefined : heads.get(one.network_id)
      const node_head = isAdmin ? one.node_head : null
      const lag =
        head && node_head !== null ? Math.max(0, node_head - head.block_number) : undefined
      return {
        chain: one.chain,
        network: one.network,
        is_default_network: one.isDefault,
        kind: one.kind,
        variant: one.variant,
        is_tracked: head !== undefined,
        block_number: head ? `${head.block_number}` : null,
        block_time: head?.block_time ? toTimestamp(head.block_time) : null,
        node_head: node_head === null ? null : `${node_head}`,
        lag_blocks: lag === undefined ? null : `${lag}`,
        health: one.health,
        problem: isAdmin ? one.problem : '',
        reorganization_count: isAdmin ? one.reorganizations : 0,
        gap_count: gaps.get(one.network_id ?? -1) ?? 0,
        chain_id: one.chain_id ?? null,
        symbol: known?.symbol ?? coin.symbol,
        decimals: coin.decimals,
        explorer_url: known?.explorer ?? '',
      }
    }),
  }
}

/** Lists problems of tracking: those that last, then the newest that are over. */
export const ListProblems: AdminHandler<'ListProblems'> = async ({ db }) => {
  const { open, resolved } = await listEvents(db, shownProblems)
  return { problems: [...open, ...resolved].map(presentProblem) }
}
