import type { RawFields } from '../../chains/evm/block/records.ts'
import { meaningOf } from '../../chains/evm/pool/node-error.ts'
import type { Pool, PoolOutcome } from '../../chains/evm/pool/pool-types.ts'
import type { Clock } from '../../lib/clock.ts'
import { readPoolContent } from './seen.ts'

/** What the recorder asks nodes. */
export type PendingNodes = {
  /** As all nodes know it, without a block of another branch; null when none does, undefined when none answered. */
  find(hash: string, signal: AbortSignal): Promise<RawFields | null | undefined>
  /** The hashes of a block; undefined when no node has it any more, or none gave them. */
  transactionsOf(block: string, signal: AbortSignal): Promise<string[] | undefined>
  /** The hash of the block at a height, null where there is none; undefined when no node said. */
  hashAt(number: number, signal: AbortSignal): Promise<string | null | undefined>
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

const hashPattern = /^0x[0-9a-f]{64}$/i

const isHashes = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string' && hashPattern.test(one))

/** A block as a node returns it; undefined when none answered, or with something else. */
const readBlock = (outcome: PoolOutcome): RawFields | null | undefined => {
  if ('failure' in outcome || !outcome.ok) return undefined
  try {
    const block: unknown = JSON.parse(outcome.result)
    return typeof block === 'object' ? (block as RawFields | null) : undefined
  } catch {
    return undefined
  }
}

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
      const { transactions } = readBlock(await call('getBlockByHash', [block, false], signal)) ?? {}
      return isHashes(transactions) ? transactions : undefined
    },
    hashAt: async (number, signal) => {
      const args = [`0x${number.toString(16)}`, false]
      const block = readBlock(await call('getBlockByNumber', args, signal))
      if (block === null) return null
      return typeof block?.hash === 'string' ? block.hash : undefined
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
