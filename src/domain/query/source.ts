// The chain queries (Q) and the port that they use, `QuerySource`, which the application builds on a network
// of the gateway. Every answer belongs to the canonical branch.

import type { RawFields } from '../../chains/evm/block/records.ts'
import type { Pool } from '../../chains/evm/pool/pool-types.ts'
import { OperationError, type Reason } from '../../contract/errors/errors.ts'
import type { Principal } from '../access/principal.ts'

/** What a method was answered: the text of its result, or why there is none. */
export type SourceAnswer = { ok: true; result: string } | { ok: false; reason: Reason }

/** The query chain, as the operations read it. The app builds it on the network of the gateway. */
export type QuerySource = {
  /** Of its stored rows. */
  network_id: number
  /** Method prefix of the chain: `eth`. */
  prefix: string
  pool: Pick<Pool, 'request' | 'head' | 'can' | 'status'>
  /** Answers as the gateway does: from its cache, joined, never behind what the caller has seen. */
  read(principal: Principal, method: string, args: readonly unknown[]): Promise<SourceAnswer>
  /** What is canonical. */
  view: {
    final(): number
    generation(): number
    bestHashAt(number: number): string | undefined
    isLinking(): boolean
    isGone(hash: string): boolean
    /** Nodes that show a head of another branch. */
    aside(): string[]
    /** Asks the nodes for their heads, and waits for the choice among them. */
    settle(): Promise<void>
  }
  /** Answers of methods that the gateway does not offer; they die with their block. */
  kept: {
    find(key: string): string | undefined
    keep(key: string, result: string, block: { number: number; hash: string }): void
  }
  /** Takes pending transactions that an operation has come across. */
  seePending(transactions: readonly RawFields[]): Promise<void>
  /** What the nodes hold of one sender that was not announced; empty where no node supports this. */
  pendingOf(from: string, signal: AbortSignal): Promise<RawFields[]>
  timeoutMs: number
}

/** The query chain of a call; without it nothing can be read. */
export function sourceOf({ query }: { query?: QuerySource | undefined }): QuerySource {
  if (!query) throw new OperationError('CHAIN_NOT_CONFIGURED', { retryAfter: 60 })
  return query
}

/** A failure to read as the caller sees it. */
export const unread = (reason: Reason): OperationError =>
  new OperationError(reason, reason === 'UPSTREAM_UNAVAILABLE' ? { retryAfter: 1 } : {})
