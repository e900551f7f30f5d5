import type { Clock } from '../../lib/clock.ts'
import type { ChainEvent, Position } from '../chain.ts'
import { hasLeft } from '../follow/branch.ts'
import { followSource } from '../follow/driver.ts'
import { createFetchAhead } from '../follow/fetch-ahead.ts'
import { skipMissing } from '../follow/missing.ts'
import type { Fetcher } from './fetch.ts'
import type { TonNodes } from './nodes.ts'
import { type RawBlockId, readBlockId } from './raw.ts'

/** What following needs. */
export type FollowTools = {
  nodes: TonNodes
  fetcher: Fetcher
  clock: Clock
  /** How often to look for a new block. */
  pollMs: number
  /** Blocks that are fetched at once. */
  inFlight: number
  /** How long a block that no node has is asked for again before it counts as lost. */
  patienceMs: number
}

// Blocks of one event, which the tracker stores in one transaction.
const maxBatch = 50

/** Gives the blocks after a position (see `Chain.follow`). */
export const follow = (
  { nodes, fetcher, clock, pollMs, inFlight: most, patienceMs }: FollowTools,
  after: Position,
  outer: AbortSignal,
): AsyncGenerator<ChainEvent> => {
  const { set, hashAt } = nodes
  return followSource(
    {
      clock,
      open: (signal) => {
        const fetchBlock = (number: number) => fetcher.block(number, signal)
        // On a slow plan blocks that are fetched at once would only delay each other.
        const inFlight = Math.max(1, Math.min(most, Math.floor(nodes.callsPerSecond() / 4)))
        const ahead = createFetchAhead({ fetchBlock, inFlight, maxBatch })
        const tops = readTops(after.detail)
        if (tops) fetcher.remember(after.number, tops)
        set.readmit()
        let polledAt = Number.NEGATIVE_INFINITY
        return {
          ...ahead,
          head: set.best,
          news: async () => {
            // One call per interval, however many blocks come in it.
            const waitMs = polledAt + pollMs - clock.now()
            if (waitMs > 0) await clock.sleep(waitMs, signal)
            polledAt = clock.now()
            await set.refreshAny(signal)
          },
          // A block right at the head may not have arrived yet.
          lost: skipMissing({ fetchBlock, patienceOf: () => patienceMs }),
          hasLeft: (position, waitedMs) =>
            hasLeft({ set, hashAt, patienceMs }, { position, waitedMs }, signal),
        }
      },
    },
    after,
    outer,
  )
}

const readTops = (detail: unknown): RawBlockId[] | undefined => {
  const tops = (detail as { tops?: unknown } | null | undefined)?.tops
  const ids = Array.isArray(tops) ? tops.map(readBlockId) : [undefined]
  return ids.every((id) => id !== undefined) ? ids : undefined
}
