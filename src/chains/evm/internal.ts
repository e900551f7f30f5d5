import type { Clock } from '../../lib/clock.ts'
import { ChainUnavailableError } from '../chain.ts'
import type { ReadBlock } from './header.ts'
import { isPruned, type Nodes, reached } from './nodes.ts'
import type { Rpc } from './rpc.ts'
import { type InternalTransfer, readFrames, readTraces } from './traces.ts'

/** How long a node that traces is waited for: without it a deposit may be missed for ever. */
export const tracingPatienceMs = 300_000

// Every node that prunes has the states of more blocks than these.
const recentBlocks = 64

/** What moved inside the calls of a block, by transaction, as far as it can be known. */
export type Internal = {
  transfers?: readonly (readonly InternalTransfer[])[]
  /** Why it is not known although some node traces. */
  lacks?: string
  /** The node that traced it. */
  tracer?: string
}

/**
 * Makes the function that fetches what moved inside the calls of a block. Nothing where no node can
 * trace; a node that can and is only away is waited for.
 */
export function createFetchInternal({ rpc, pool, clock }: { rpc: Rpc; pool: Nodes; clock: Clock }) {
  let troubleSince: number | undefined
  const isPatient = (): boolean => {
    troubleSince ??= clock.now()
    return clock.now() - troubleSince < tracingPatienceMs
  }

  return async (
    { hash, number, transactions }: ReadBlock,
    signal: AbortSignal,
  ): Promise<Internal> => {
    const hashes = transactions.map((transaction) => transaction.hash)
    const at = reached(pool, Number(number))
    const isRecent = Number(number) > (pool.head()?.number ?? 0) - recentBlocks
    const ways = [
      {
        method: 'debug_traceBlockByHash',
        params: [hash, { tracer: 'callTracer' }],
        needs: 'debug_trace' as const,
        accept: (result: unknown) => readFrames(result, hashes),
      },
      {
        method: 'trace_block',
        params: [number],
        needs: 'parity_trace' as const,
        accept: (result: unknown) => readTraces(result, { hash, hashes }),
      },
    ]
    let failure: unknown
    let isDoubtful = false
    let isPrunedAway = false
    for (const way of ways) {
      if (!pool.can(way.needs)) {
        isDoubtful ||= pool.has(way.needs) !== false
        continue
      }
      try {
        const answered = await rpc.try({ ...way, ...at, signal })
        if (answered.kind === 'answer') {
          troubleSince = undefined
          return { transfers: answered.answer }
        }
        if (answered.kind === 'error' && isPruned(answered)) {
          isPrunedAway = true
          isDoubtful ||= isRecent
          continue
        }
        failure = new ChainUnavailableError(`block ${Number(number)} cannot be traced now`)
      } catch (error) {
        signal.throwIfAborted()
        failure = error
      }
    }
    if (failure) throw failure
    if (isDoubtful && isPatient())
      throw new ChainUnavailableError(`no node can trace block ${Number(number)} now`)
    if (isPrunedAway) return { lacks: 'no node has the state to trace it any more' }
    return isDoubtful ? { lacks: 'the node that traces was away' } : {}
  }
}
