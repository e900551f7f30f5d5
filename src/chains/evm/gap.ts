import { BlockMissingError, type BlockRef } from '../chain.ts'
import type { FetchBlock } from './fetch.ts'

/**
 * The last of the blocks from `from` on that no node has any more, named by the first one that is
 * there. Undefined when there is none up to the head, which is then no lost history but trouble.
 */
export async function findGapEnd(
  { fetchBlock }: { fetchBlock: FetchBlock },
  { from, head }: { from: number; head: number },
  signal: AbortSignal,
): Promise<BlockRef | undefined> {
  const tryFetch = async (number: number) => {
    try {
      return await fetchBlock(number, signal)
    } catch (error) {
      if (error instanceof BlockMissingError) return undefined
      throw error
    }
  }
  let missing = from
  let there = head
  let first = await tryFetch(head)
  if (!first) return undefined
  // Nodes throw away the oldest first.
  while (there - missing > 1) {
    const middle = Math.floor((missing + there) / 2)
    const block = await tryFetch(middle)
    if (block) [there, first] = [middle, block]
    else missing = middle
  }
  return there > from ? { number: there - 1, hash: first.parent_hash } : undefined
}
