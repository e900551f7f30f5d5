import { describe, expect, it } from 'vitest'
import { type Chain, type ChainBlock, ChainUnavailableError } from '../chain.ts'

/** How a node fails. */
export type NodeFailure =
  | 'refuses connections'
  | 'does not answer'
  | 'limits the rate'
  | 'limits the rate with Retry-After'
  | 'fails with server errors'
  | 'is behind'
  | 'returns invalid data'
  | 'has pruned its history'
  | 'is on another chain'
  | 'flaps'

/** A chain with two nodes: the preferred one fails, the other works. */
export type FailingNode = {
  chain: Chain
  mine(count: number): Promise<void>
  /** Those that the development node can play; each gives the function that ends it. */
  failures: Partial<Record<NodeFailure, () => () => void>>
  stop(): Promise<void>
}

const limitMs = 60_000
const count = 5

/** Checks that a chain goes on beside a node that fails, and with it once it works again. */
export function describeNodeFailures(name: string, create: () => Promise<FailingNode>): void {
  describe(`the chain ${name} beside a node that`, () => {
    const names: NodeFailure[] = [
      'refuses connections',
      'does not answer',
      'limits the rate',
      'limits the rate with Retry-After',
      'fails with server errors',
      'is behind',
      'returns invalid data',
      'has pruned its history',
      'is on another chain',
      'flaps',
    ]
    it.for(names)('%s', { timeout: 2 * limitMs }, async (failure, context) => {
      const { chain, mine, failures, stop } = await create()
      context.onTestFinished(stop)
      const fail = failures[failure]
      if (!fail) return context.skip()
      const begin = await chain.head(AbortSignal.timeout(limitMs))
      const heal = fail()
      await mine(count)
      const blocks = await followTo(chain, begin, begin.number + count)
      heal()
      await mine(count)
      blocks.push(...(await followTo(chain, blocks.at(-1)!, begin.number + 2 * count)))
      expect(blocks.map(({ number }) => number)).toEqual(
        Array.from({ length: 2 * count }, (_, index) => begin.number + 1 + index),
      )
      let last: Pick<ChainBlock, 'hash'> = begin
      for (const block of blocks) {
        expect(block.parent_hash).toEqual(last.hash)
        last = block
      }
    })
  })
}

/** Follows to a number; resumes when no node answered for a while, as the tracker does. */
async function followTo(
  chain: Chain,
  after: Pick<ChainBlock, 'number' | 'hash'>,
  number: number,
): Promise<ChainBlock[]> {
  const taken: ChainBlock[] = []
  const signal = AbortSignal.timeout(limitMs)
  const last = () => taken.at(-1) ?? after
  while (last().number < number)
    try {
      for await (const event of chain.follow(last(), signal)) {
        if (event.kind !== 'blocks') throw new Error(`unexpected ${event.kind}`)
        taken.push(...event.blocks)
        if (last().number >= number) break
      }
    } catch (error) {
      if (!(error instanceof ChainUnavailableError)) throw error
    }
  return taken
}
