import { describe, expect, it } from 'vitest'
import { type Chain, type ChainBlock, ChainUnavailableError } from '../chain.ts'

/** How a node fails. */
const nodeFailures = [
  'refuses connections',
  'does not answer',
  'limits the rate',
  'limits the rate with Retry-After',
  'fails with server errors',
  'is behind',
  'returns invalid data',
  'has pruned its history',
  'is on another chain',
  'is on another fork',
  'flaps',
] as const

type NodeFailure = (typeof nodeFailures)[number]

/** Starts a failure; gives the function that ends it. */
export type StartFailure = () => (() => void) | Promise<() => void>

/** A chain with two nodes: the preferred one fails, the other works. */
export type FailingNode = {
  chain: Chain
  mine(count: number): Promise<void>
  /** Every family has every failure: a table with a hole does not compile. */
  failures: Record<NodeFailure, StartFailure>
  stop(): Promise<void>
}

const limitMs = 60_000
const count = 5

/** Checks that a chain continues while one of its nodes fails, and after the node works again. */
export function describeNodeFailures(name: string, create: () => Promise<FailingNode>): void {
  describe(`the chain ${name} beside a node that`, () => {
    it.for(nodeFailures)('%s', { timeout: 2 * limitMs }, async (failure, context) => {
      const { chain, mine, failures, stop } = await create()
      context.onTestFinished(stop)
      const begin = await chain.head(AbortSignal.timeout(limitMs))
      const heal = await failures[failure]()
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
