import type { BlockRef, ChainBlock } from '../chain.ts'
import type { Fetch } from './fetch.ts'
import { StateMissingError } from './nodes.ts'

/**
 * The last of the blocks from `from` on whose state nobody has any more, named by the first one that
 * is there. Undefined when not even the head is there, which is no lost history but trouble.
 */
export async function findGapEnd(
  fetch: Pick<Fetch, 'block'>,
  { from, head }: { from: number; head: number },
  signal: AbortSignal,
): Promise<BlockRef | undefined> {
  const tryBlock = async (number: number): Promise<ChainBlock | undefined> => {
    try {
      return await fetch.block(number, signal)
    } catch (error) {
      if (error instanceof StateMissingError) return undefined
      throw error
    }
  }
  let first = await tryBlock(head)
  if (!first) return undefined
  let lost = from - 1
  // Nodes throw away the oldest first.
  while (first.number - lost > 1) {
    const middle = Math.floor((lost + first.number) / 2)
    const block = await tryBlock(middle)
    if (block) first = block
    else lost = middle
  }
  return first.number > from ? { number: first.number - 1, hash: first.parent_hash } : undefined
}
