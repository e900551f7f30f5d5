import {
  type BlockHeader,
  BlockMissingError,
  type BlockRef,
  type Chain,
  type Position,
  UnreadableError,
} from '../../chains/chain.ts'
import { findGapEnd } from '../../chains/follow/linked.ts'

/**
 * The last of the blocks from the next one on that cannot be named: the next one, where its header can
 * be read or that of its child, else all up to the first one whose header can.
 */
export async function findReadable(
  chain: Chain,
  position: Position,
  signal: AbortSignal,
): Promise<BlockRef | undefined> {
  const find = async (number: number): Promise<BlockHeader | undefined> =>
    await chain.header(number, signal).catch((error: unknown) => {
      signal.throwIfAborted()
      if (error instanceof BlockMissingError || error instanceof UnreadableError) return undefined
      throw error
    })
  const head = (await chain.head(signal)).number
  const next = position.number + 1
  if (head < next) return undefined
  const own = await find(next)
  if (own) {
    const { number, hash, parent_hash } = own
    // Another branch is not an unreadable block: following finds that out.
    return parent_hash.equals(position.hash) ? { number, hash } : undefined
  }
  return await findGapEnd(find, { from: next, head })
}
