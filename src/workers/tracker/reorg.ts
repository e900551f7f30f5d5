import type { BlockHeader } from '../../chains/chain.ts'
import { expandBacklogs } from '../../storage/balances/backlog.ts'
import { reopenBalances } from '../../storage/balances/changes.ts'
import { lowerReopening, reopenAllBalances } from '../../storage/balances/reopening.ts'
import { notifyChange } from '../../storage/pg/changes.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  type BlockRow,
  deleteBlocksAbove,
  findBlocks,
  findCursor,
  insertBlocks,
  listBlocksBelow,
  setCursor,
} from '../../storage/tracking/blocks.ts'
import { deleteGapsAbove, syncGapEvent } from '../../storage/tracking/gaps.ts'
import { deleteTransfersAbove, hasTransfersBetween } from '../../storage/transfers/transfers.ts'
import { unconfirmAbove } from '../../storage/wallets/wallets.ts'
import { unfollowAbove } from '../sender/follow.ts'
import { planRetractions, retractAll } from './retract.ts'
import { beginWrite, largestWindow } from './store.ts'
import type { TrackerTools } from './tools.ts'

/** How many blocks back a reorganization may reach at least; those of the last hour count as well. */
export const reorganizationWindow = 256

/** The stored blocks and those of the chain have nothing in common: no block is ever overwritten then. */
export class DivergedError extends Error {
  override name = 'DivergedError'
}

/**
 * The newest stored block that is on the chain as it is now. Undefined while the chain has nothing
 * above it to replace what would be dropped: a node that lags looks just like that.
 */
export async function findAncestor(
  { db, network_id, chain, window }: TrackerTools,
  signal: AbortSignal,
): Promise<BlockHeader | undefined> {
  // Read without a lock, because nodes are called below. `rollBack` checks that the cursor has not
  // moved.
  const cursor = await findCursor(db, network_id)
  if (!cursor) return undefined
  const stored = await listBlocksBelow(db, network_id, cursor.block_number + 1, largestWindow + 1)
  const isOnChain = async (at: number): Promise<boolean> => {
    const { block_number, block_hash } = stored[at]!
    return (await chain.header(block_number, signal))?.hash.equals(block_hash) === true
  }
  // Reorganizations are short: steps of 1, 2, 4 … back, then between the last two.
  let bad = -1
  let good = stored.length
  for (let step = 1, at = 0; at < stored.length; at += step, step *= 2) {
    if (await isOnChain(at)) {
      good = at
      break
    }
    bad = at
  }
  while (good - bad > 1) {
    const middle = Math.floor((bad + good) / 2)
    if (await isOnChain(middle)) good = middle
    else bad = middle
  }
  const found = stored[good]
  const ancestor = found ? toHeader(found) : await headerBefore(stored.at(-1)?.block_number ?? 0)
  if (!ancestor)
    throw new DivergedError(
      `none of the last ${stored.length} stored blocks up to ${cursor.block_number} is on the chain; see portolan rewind`,
    )
  // Wait until the chain has a block above the ancestor. Rolling back to a branch that is only
  // shorter would retract notifications for nothing.
  return (await chain.header(ancestor.number + 1, signal)) ? ancestor : undefined

  // Soon after the first start all that was ever stored may be gone: then there is nothing older
  // to agree with, and nothing to lose before it. After a rewind there may be transfers of blocks that are not stored, of
  // which no hash says on which branch they are.
  async function headerBefore(lowest: number): Promise<BlockHeader | undefined> {
    const from = cursor!.block_number - window
    if (lowest <= 0 || lowest <= from) return undefined
    if (await hasTransfersBetween(db, network_id, { from, before: lowest })) return undefined
    return await chain.header(lowest - 1, signal)
  }
}

const toHeader = (row: BlockRow): BlockHeader => ({
  number: row.block_number,
  hash: row.block_hash,
  parent_hash: row.parent_hash,
  time: row.block_time.getTime(),
})

/**
 * Removes everything above a block in one transaction: transfers leave the lists, waiting notifications are
 * deleted, sent ones are followed by a REORGED one, balances are read again. Says whether notifications are
 * left to be retracted later.
 */
export async function rollBack(tools: TrackerTools, ancestor: BlockHeader): Promise<boolean> {
  const { db, network_id } = tools
  const cursor = await findCursor(db, network_id)
  if (!cursor || cursor.block_number <= ancestor.number) return false
  return await db.transaction().execute(async (trx) => {
    await beginWrite(trx, tools, { number: cursor.block_number, hash: cursor.block_hash })
    return await takeBack(trx, tools, ancestor)
  })
}

/** Removes everything above a block, in a transaction that has locked the cursor. */
export async function takeBack(
  trx: Db,
  {
    clock,
    network_id,
    chain,
    fanOutLimits: limits,
  }: Pick<TrackerTools, 'clock' | 'network_id' | 'chain' | 'fanOutLimits'>,
  ancestor: BlockHeader,
): Promise<boolean> {
  const now = new Date(clock.now())
  const [known] = await findBlocks(trx, network_id, [ancestor.number])
  const cursor = await findCursor(trx, network_id)
  // First: this waits for reads of balances at these blocks, or makes them find the block gone.
  await deleteBlocksAbove(trx, network_id, ancestor.number)
  await deleteGapsAbove(trx, network_id, ancestor.number)
  await syncGapEvent(trx, network_id, now)
  await insertBlocks(trx, [
    {
      network_id,
      block_number: ancestor.number,
      block_hash: ancestor.hash,
      parent_hash: ancestor.parent_hash,
      block_time: new Date(ancestor.time),
    },
  ])
  // Everything that refers to removed blocks goes in this one transaction: no reader sees half of a
  // rollback.
  await deleteTransfersAbove(trx, network_id, ancestor.number)
  await unconfirmAbove(trx, network_id, ancestor.number)
  const { removed, isLeft } = await planRetractions(
    trx,
    { network_id, now, limits },
    ancestor.number,
  )
  const isStateLeft = await unfollowAbove(trx, { network_id, now, limits }, removed)
  // Backlogs name no block of each pair, so a rollback cannot cut them. They become single rows,
  // which `reopenBalances` then corrects.
  await expandBacklogs(trx, network_id)
  // A node may have answered for the common block with the branch that it was just leaving. Before
  // the first stored block the common block is not known.
  const suspect_from = known ? ancestor.number : 0
  await lowerReopening(trx, network_id, ancestor.number)
  await reopenBalances(trx, { network_id, above: ancestor.number, suspect_from, now })
  // What was read at blocks that are not stored any more is in no list, and chains without reorganizations keep none: then
  // every balance may be of a block that is gone.
  if (!known || !chain.reorganizes) {
    const { number } = ancestor
    await reopenAllBalances(trx, { network_id, block_number: number, lower_to: number })
  }
  await retractAll(trx, removed, now)
  await setCursor(trx, {
    network_id,
    block_number: ancestor.number,
    block_hash: ancestor.hash,
    update_time: now,
  })
  // Live streams show the reorganization. A hint only: nothing depends on its arrival.
  if (cursor)
    await notifyChange(trx, {
      ...{ kind: 'reorganization', network_id },
      ...{ from_block: ancestor.number + 1, to_block: cursor.block_number },
    })
  return isLeft || isStateLeft
}
