// Where a tracker begins, and whether its nodes are those that the stored rows came from.

import type { Chain, Position } from '../../chains/chain.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import { findGapAt } from '../../storage/tracking/gaps.ts'
import { findTraced, type NetworkName, pinIdentity } from '../../storage/tracking/networks.ts'
import { storeBeginning } from './store.ts'
import type { TrackerTools } from './tools.ts'

/** The chain's nodes are not those that the rows came from. */
export class ForeignChainError extends Error {
  override name = 'ForeignChainError'
}

/**
 * Refuses nodes of another chain: the tracker would store foreign transfers below the cursor, a backfill
 * likewise, and a rewind would go back to a block that has nothing to do with the stored ones. The first
 * call pins the identity, so a network can never change its chain.
 */
export async function requireIdentity(
  { db, network_id, chain }: { db: Db; network_id: number; chain: Chain },
  signal: AbortSignal,
  others?: readonly NetworkName[],
): Promise<void> {
  const identity = await chain.identity(signal)
  const pinned = await pinIdentity(db, network_id, identity, others)
  if ('other' in pinned)
    throw new ForeignChainError(
      `the nodes are those of ${pinned.other.chain}/${pinned.other.network} (${identity}), so its transfers would be tracked twice: name other nodes, or set \`shared: true\` on the chain`,
    )
  if (pinned.identity !== identity)
    throw new ForeignChainError(
      `the nodes are of another chain (${identity}) than the stored blocks (${pinned.identity}): name nodes of that chain, or another network; of local chains, start with --reset`,
    )
}

/** The cursor with all that following from it needs; undefined before the first start. */
export async function findPosition({
  db,
  network_id,
}: Pick<TrackerTools, 'db' | 'network_id'>): Promise<Position | undefined> {
  const cursor = await findCursor(db, network_id)
  if (!cursor) return undefined
  const { block_number: number, block_hash: hash, detail } = cursor
  const lacks = await findGapAt(db, network_id, number)
  const isTraced = await findTraced(db, network_id)
  return { number, hash, detail, isTraced, ...(lacks !== undefined && { lacks }) }
}

/** The cursor, or the head of the chain at the first start: blocks before it are for `portolan backfill`. */
export async function findBeginning(
  tools: TrackerTools,
  others: readonly NetworkName[] | undefined,
  signal: AbortSignal,
): Promise<Position> {
  await requireIdentity(tools, signal, others)
  const position = await findPosition(tools)
  if (position) return position
  const head = await tools.chain.head(signal)
  await storeBeginning(tools, head)
  return head
}
