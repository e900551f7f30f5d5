import { LRUCache } from 'lru-cache'
import type { Principal } from '../access/principal.ts'
import type { Context } from '../context.ts'
import type { QuerySource } from './source.ts'

/** An operation that was begun before it is known whether its request may be answered. */
export type Begun<answer> = {
  answer: Promise<answer>
  /** The request is admitted: the held work continues. */
  admit(): void
  /** It may not: what was held back ends. */
  refuse(error: unknown): void
}

/** Does chain queries while the nonces of their requests are being spent. */
export type Ahead = {
  /** Undefined where nothing is done ahead of time. */
  begin<answer>(
    context: Context,
    operation: (context: Context) => Promise<answer>,
  ): Begun<answer> | undefined
  /** Whether the limits admit the request: nothing is fetched ahead for a caller above its limit. */
  decided(principal: Principal, allowed: boolean): void
}

/** Those that only read, and begin with reading from the chain. */
const operations: ReadonlySet<string> = new Set([
  'GetBlock',
  'GetTransaction',
  'GetTransactionReceipt',
  'ListInternalTransactions',
  'ListLogs',
  'ListTransactions',
])

/**
 * A nonce takes about as long as a node's answer, and far longer than one from the cache: both at once.
 * Nothing of what is read goes out by this, and a refused request has cost its node the reads that the
 * operation begins with, at most: all others wait until it is admitted.
 */
export function createAhead(): Ahead {
  const refused = new LRUCache<string, true>({ max: 10_000, ttl: 10_000 })
  return {
    begin(context, operation) {
      const { query, service, principal } = context
      if (!query || service !== 'q' || !operations.has(context.operation)) return undefined
      if (refused.has(principal.organization_id)) return undefined
      const { promise: admitted, resolve: admit, reject: refuse } = Promise.withResolvers<void>()
      let isFirst = true
      const answer = operation({ ...context, query: heldBack(query, () => !isFirst, admitted) })
      isFirst = false
      // It is awaited later; that of a refused request is never awaited.
      answer.catch(ignore)
      admitted.catch(ignore)
      return { answer, admit, refuse }
    },
    decided({ organization_id }, allowed) {
      if (!allowed) refused.set(organization_id, true)
    },
  }
}

function heldBack(query: QuerySource, isHeld: () => boolean, admitted: Promise<void>): QuerySource {
  const { head, can, status, request } = query.pool
  return {
    ...query,
    read: (...asked) =>
      isHeld() ? admitted.then(() => query.read(...asked)) : query.read(...asked),
    pool: { head, can, status, request: (asked) => admitted.then(() => request(asked)) },
  }
}

const ignore = () => {}
