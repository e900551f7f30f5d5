// Following a chain of linked blocks: fetching ahead and checking parent hashes. Families use it
// with their own transport and waiting rule. It guarantees that blocks are returned in order
// without gaps.

import type { BlockHeader, BlockRef, ChainBlock } from '../chain.ts'

/** As many of the blocks as follow on a position, each as the child of the one before. */
export function takeLinked(after: BlockRef, blocks: readonly ChainBlock[]): ChainBlock[] {
  let last = after
  const broken = blocks.findIndex((block) => {
    const isChild = block.parent_hash.equals(last.hash)
    last = block
    return !isChild
  })
  return broken === -1 ? [...blocks] : blocks.slice(0, broken)
}

/**
 * The last of the blocks from `from` on that no node has any more, named by the first one that is
 * there. Undefined when not even the head is there, which is no lost history but trouble.
 */
export async function findGapEnd(
  find: (number: number) => Promise<BlockHeader | undefined>,
  { from, head }: { from: number; head: number },
): Promise<BlockRef | undefined> {
  let first = await find(head)
  if (!first) return undefined
  let lost = from - 1
  // Nodes discard the oldest first.
  while (first.number - lost > 1) {
    const middle = Math.floor((lost + first.number) / 2)
    const block = await find(middle)
    if (block) first = block
    else lost = middle
  }
  return first.number > from ? { number: first.number - 1, hash: first.parent_hash } : undefined
}
