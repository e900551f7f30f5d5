import { LRUCache } from 'lru-cache'
import type { Service } from '../../contract/variant.ts'
import type { Installation, Principal } from '../context.ts'
import type { QuerySource, SourceAnswer } from './source.ts'

/** A request whose signature is right, but which may not be answered yet. */
export type Announced = {
  principal: Principal
  service: Service
  name: string
  /** Reads and checks the request; throws where it is refused. */
  request(): unknown
}

/** Begins to read from the chain what a request will ask for, while its nonce is being spent. */
export type Warming = {
  /** The source for the operation, which takes what was begun; undefined where nothing was. */
  (installation: Pick<Installation, 'query'>, announced: Announced): QuerySource | undefined
  /** Whether the limits let the request through: who is over them is not read for ahead of time. */
  decided(principal: Principal, allowed: boolean): void
}

type Warm = (source: QuerySource, principal: Principal, request: never) => Promise<unknown>

const ofTransaction =
  (method: string) =>
  (
    source: QuerySource,
    principal: Principal,
    { transaction_hash }: { transaction_hash: string },
  ): Promise<unknown> =>
    source.read(principal, method, [transaction_hash.toLowerCase()])

/** The same reads that the operations begin with. */
const reads: Readonly<Record<string, Warm>> = {
  GetBlock: (source, principal, { block_number }: { block_number: number }) =>
    source.read(principal, 'evm_getBlockByNumber', [`0x${block_number.toString(16)}`, false]),
  GetTransaction: ofTransaction('evm_getTransactionByHash'),
  GetTransactionReceipt: ofTransaction('evm_getTransactionReceipt'),
  ListInternalTransactions: ofTransaction('evm_getTransactionReceipt'),
  ListLogs: ofTransaction('evm_getTransactionReceipt'),
  ListTransactions: (source, principal, request: { transaction_hashes: string[] }) =>
    Promise.all(
      request.transaction_hashes.map((hash) =>
        source.read(principal, 'evm_getTransactionByHash', [hash.toLowerCase()]),
      ),
    ),
}

const keyOf = ([, method, args]: Parameters<QuerySource['read']>): string =>
  `${method} ${JSON.stringify(args)}`

/**
 * A durable nonce costs a disk flush, about as long as a node takes to answer: both at once. Nothing of
 * what is read goes out by this, and a refused request has cost its node one read at most.
 */
export function createWarming(): Warming {
  const refused = new LRUCache<string, true>({ max: 10_000, ttl: 10_000 })
  const warm = (
    { query }: Pick<Installation, 'query'>,
    { principal, service, name, request }: Announced,
  ): QuerySource | undefined => {
    const read = service === 'q' && query ? reads[name] : undefined
    if (!read || !query || refused.has(principal.organization_id)) return undefined
    const begun = new Map<string, Promise<SourceAnswer>[]>()
    const beginning: QuerySource = {
      ...query,
      read: (...asked) => {
        const answer = query.read(...asked)
        const key = keyOf(asked)
        begun.set(key, [...(begun.get(key) ?? []), answer])
        return answer
      },
    }
    try {
      read(beginning, principal, request() as never).catch(() => {})
    } catch {
      // The request is refused in its turn.
    }
    // Each is taken once: who reads again wants to know what has changed.
    return {
      ...query,
      read: (...asked) => begun.get(keyOf(asked))?.shift() ?? query.read(...asked),
    }
  }
  return Object.assign(warm, {
    decided: ({ organization_id }: Principal, allowed: boolean) => {
      if (!allowed) refused.set(organization_id, true)
    },
  })
}
