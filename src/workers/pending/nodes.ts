import type { RawFields } from '../../chains/evm/block/records.ts'
import { meaningOf } from '../../chains/evm/pool/node-error.ts'
import type { Pool } from '../../chains/evm/pool/pool-types.ts'
import type { Clock } from '../../lib/clock.ts'
import { readPoolContent } from './seen.ts'

/** What the recorder asks nodes. */
export type PendingNodes = {
  /** As all nodes know it, without a block of another branch; null when none does, undefined when none answered. */
  find(hash: string, signal: AbortSignal): Promise<RawFields | null | undefined>
  /** The hashes of a block; empty when no node has it any more. */
  transactionsOf(block: string, signal: AbortSignal): Promise<string[]>
  /** All that one node holds, also what waits for a nonce; empty where no node supports it. */
  content(signal: AbortSignal): Promise<RawFields[]>
  /** The same of one sender. */
  contentOf(from: string, signal: AbortSignal): Promise<RawFields[]>
}

const timeoutMs = 10_000
/** A caller waits for this one. */
const quickMs = 2_000
// How long a missing method is believed before it is tried again: nodes are upgraded.
const lackingMs = 600_000

/** Asks the nodes of a pool. */
export function createPendingNodes(options: {
  pool: Pick<Pool, 'request' | 'can'>
  prefix: string
  clock: Clock
  isOnBranch(number: number, hash: string): boolean
}): PendingNodes {
  const { pool, prefix, clock, isOnBranch } = options
  let lacksContentOf = 0

  const call = (method: string, params: unknown[], signal: AbortSignal) =>
    pool.request({
      method: `${prefix}_${method}`,
      params: JSON.stringify(params),
      idempotent: true,
      timeoutMs,
      signal,
      // Others may have what one does not have.
      isUseless: (reply) => reply.ok && reply.result === 'null',
    })

  return {
    find: async (hash, signal) => {
      const outcome = await call('getTransactionByHash', [hash], signal)
      if ('failure' in outcome || !outcome.ok) return undefined
      const raw: RawFields | null = JSON.parse(outcome.result)
      const { blockHash, blockNumber } = raw ?? {}
      const isAside = typeof blockHash === 'string' && !isOnBranch(Number(blockNumber), blockHash)
      return isAside ? { ...raw, blockHash: null, blockNumber: null } : raw
    },
    transactionsOf: async (block, signal) => {
      const outcome = await call('getBlockByHash', [block, false], signal)
      if ('failure' in outcome || !outcome.ok) return []
      const { transactions = [] } = JSON.parse(outcome.result) ?? {}
      return transactions
    },
    content: async (signal) => {
      if (!pool.can('txpool')) return []
      const outcome = await pool.request({
        method: 'txpool_content',
        params: '[]',
        needs: 'txpool',
        idempotent: true,
        timeoutMs,
        signal,
      })
      if ('failure' in outcome || !outcome.ok) return []
      return readPoolContent(JSON.parse(outcome.result))
    },
    contentOf: async (from, signal) => {
      if (!pool.can('txpool') || clock.now() < lacksContentOf) return []
      const outcome = await pool.request({
        method: 'txpool_contentFrom',
        params: JSON.stringify([from]),
        needs: 'txpool',
        idempotent: true,
        timeoutMs: quickMs,
        signal,
      })
      if ('failure' in outcome) return []
      if (outcome.ok) return readPoolContent(JSON.parse(outcome.result))
      // Not every node with a pool has this one; then `content` brings it a little later.
      if (meaningOf(outcome.error) === 'lacks_method') lacksContentOf = clock.now() + lackingMs
      return []
    },
  }
}
