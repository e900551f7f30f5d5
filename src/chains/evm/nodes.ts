import type { Clock } from '../../lib/clock.ts'
import type { Pool } from '../upstream/pool-types.ts'

/** As much of a pool of nodes as a chain needs. */
export type Nodes = Pick<
  Pool,
  'request' | 'broadcast' | 'head' | 'onHead' | 'can' | 'has' | 'chainId' | 'status'
>

const longestMs = 3_000
const stepMs = 25

/**
 * Waits a little until it is known what the nodes can do. A node that was not asked yet looks as one
 * that cannot trace, and the first blocks would lack what moved inside calls.
 */
export function createExplored({ pool, clock }: { pool: Nodes; clock: Clock }) {
  let isOver = false
  const isKnown = () =>
    pool
      .status()
      .every(
        ({ state, capabilities }) =>
          state !== 'starting' && (state !== 'healthy' || capabilities.length > 0),
      )
  return async (signal: AbortSignal): Promise<void> => {
    const end = clock.now() + longestMs
    while (!isOver && !isKnown() && clock.now() < end) await clock.sleep(stepMs, signal)
    isOver = true
  }
}

/** A node that has not reached the block would only say that it does not know it. */
export const reached = (pool: Nodes, number: number): { minBlock?: number } => {
  const best = pool.head()?.number
  return best === undefined ? {} : { minBlock: Math.min(number, best) }
}

/** Whether a node's error says that it has thrown something away, or never had it. */
export const isPruned = ({ code, message }: { code: number; message: string }): boolean =>
  code === 4444 ||
  /prun|missing trie node|histor|ancient|not found|not available|unavailable|out ?of ?range|required state/i.test(
    message,
  )
