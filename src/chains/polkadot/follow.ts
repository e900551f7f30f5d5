import type { Clock } from '../../lib/clock.ts'
import type { ChainEvent, Position } from '../chain.ts'
import { hasLeft } from '../follow/branch.ts'
import { followSource } from '../follow/driver.ts'
import { createFetchAhead } from '../follow/fetch-ahead.ts'
import { skipMissing } from '../follow/missing.ts'
import type { Fetch } from './fetch.ts'
import { isHash } from './header.ts'
import type { PolkadotNodes } from './nodes.ts'

/** What following needs. */
export type FollowTools = {
  nodes: PolkadotNodes
  clock: Clock
  fetch: Fetch
  /** How long to wait for news before looking again. */
  pollMs: number
  /** Blocks that are fetched at once. */
  inFlight: number
  /** How long a state that no node has is asked for again before it counts as lost. */
  patienceMs: number
  /** The same while some node that may have it is unreachable. */
  longPatienceMs: number
}

const maxBatch = 50

/** Gives the final blocks after a position (see `Chain.follow`). */
export const follow = (
  tools: FollowTools,
  after: Position,
  outer: AbortSignal,
): AsyncGenerator<ChainEvent> => {
  const { nodes, clock, fetch, pollMs, inFlight, patienceMs, longPatienceMs } = tools
  const { set, hashAt } = nodes
  return followSource(
    {
      clock,
      open: (signal) => {
        const fetchBlock = (number: number) => fetch.block(number, signal)
        const ahead = createFetchAhead({ fetchBlock, inFlight, maxBatch })
        let news = Promise.withResolvers<'news'>()
        const unsubscribe = set.onHead(() => news.resolve('news'))
        set.readmit()
        return {
          ...ahead,
          head: set.best,
          news: async () => {
            const done = new AbortController()
            const time = clock.sleep(pollMs, AbortSignal.any([signal, done.signal]))
            const heard = await Promise.race([news.promise, time.catch(() => {})])
            done.abort()
            signal.throwIfAborted()
            news = Promise.withResolvers()
            // A silent chain must not be mistaken for silent nodes.
            if (!heard) await askFinal(nodes, signal)
          },
          lost: skipMissing({
            fetchBlock,
            patienceOf: ({ isCertain }) => (isCertain ? patienceMs : longPatienceMs),
          }),
          hasLeft: (position, waitedMs) =>
            hasLeft({ set, hashAt, patienceMs }, { position, waitedMs }, signal),
          stop: unsubscribe,
        }
      },
    },
    after,
    outer,
  )
}

/** Throws when no node answers. */
const askFinal = (nodes: PolkadotNodes, signal: AbortSignal): Promise<string> =>
  nodes.ask({
    method: 'chain_getFinalizedHead',
    params: [],
    signal,
    accept: (result) => (isHash(result) ? result : undefined),
  })
