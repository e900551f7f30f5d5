import { BlockMissingError, type ChainBlock } from '../chain.ts'
import type { Source } from './driver.ts'
import { findGapEnd } from './linked.ts'

/**
 * Decides about blocks that no node has: they are asked for again for a while, then following continues
 * behind them. Throws every other error, and where no node has the head either.
 */
export const skipMissing =
  (options: {
    fetchBlock(number: number): Promise<ChainBlock>
    patienceOf(error: BlockMissingError): number
  }): Source['lost'] =>
  async ({ next, head, error, waitedMs }) => {
    if (!(error instanceof BlockMissingError)) throw error
    if (waitedMs < options.patienceOf(error)) return undefined
    const find = (number: number) =>
      options.fetchBlock(number).catch((thrown: unknown) => {
        if (thrown instanceof BlockMissingError) return undefined
        throw thrown
      })
    const to = await findGapEnd(find, { from: next, head })
    if (!to) throw error
    return { to, reason: error.message }
  }
