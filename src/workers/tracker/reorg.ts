import type { BlockHeader } from '../../chains/chain.ts'
import { hashId } from '../../lib/hash-id.ts'
import { expandBacklogs } from '../../storage/balances/backlog.ts'
import { reopenBalances } from '../../storage/balances/changes.ts'
import { lowerReopening } from '../../storage/balances/reopening.ts'
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
import { deleteTransfersAbove } from '../../storage/transfers/transfers.ts'
import { unconfirmAbove } from '../../storage/wallets/wallets.ts'
import { deleteEventsAbove } from '../../storage/webhooks/notification-events.ts'
import {
  cancelWaitingAbove,
  type DeliveryRow,
  deleteWaiting,
  detachAbove,
  findExisting,
  insertWaiting,
  listSentAbove,
  lockNotifiedWebhooks,
  releaseWaiting,
  wakeCouriers,
} from '../../storage/webhooks/notifications.ts'
import { unfollowAbove } from '../sender/follow.ts'
import { followUpIdOf } from './confirmations.ts'
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
  return (await chain.header(ancestor.number + 1, signal)) ? ancestor : undefined

  // Soon after the first start all that was ever stored may be gone: then there is nothing older
  // to agree with, and nothing to lose before it.
  async function headerBefore(lowest: number): Promise<BlockHeader | undefined> {
    const isComplete = lowest > 0 && lowest > cursor!.block_number - window
    return isComplete ? await chain.header(lowest - 1, signal) : undefined
  }
}

const toHeader = (row: BlockRow): BlockHeader => ({
  number: row.block_number,
  hash: row.block_hash,
  parent_hash: row.parent_hash,
  time: row.block_time.getTime(),
})

/**
 * Takes back everything above a block in one transaction: transfers leave the lists, what waited is
 * cancelled, sent ones are followed by a REORGED one, balances are read again.
 */
export async function rollBack(tools: TrackerTools, ancestor: BlockHeader): Promise<void> {
  const { db, network_id } = tools
  const cursor = await findCursor(db, network_id)
  if (!cursor || cursor.block_number <= ancestor.number) return
  await db.transaction().execute(async (trx) => {
    await beginWrite(trx, tools, { number: cursor.block_number, hash: cursor.block_hash })
    await takeBack(trx, tools, ancestor)
  })
}

/** Takes back everything above a block, in a transaction that has locked the cursor. */
export async function takeBack(
  trx: Db,
  { clock, network_id }: Pick<TrackerTools, 'clock' | 'network_id'>,
  ancestor: BlockHeader,
): Promise<void> {
  const now = new Date(clock.now())
  const [known] = await findBlocks(trx, network_id, [ancestor.number])
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
  await deleteTransfersAbove(trx, network_id, ancestor.number)
  await unconfirmAbove(trx, network_id, ancestor.number)
  await unfollowAbove(trx, { network_id, now }, ancestor.number)
  await expandBacklogs(trx, network_id)
  // A node may have answered for the common block with the branch that it was just leaving. Before
  // the first stored block the common block is not known.
  const suspect_from = known ? ancestor.number : 0
  await lowerReopening(trx, network_id, ancestor.number)
  await reopenBalances(trx, { network_id, above: ancestor.number, suspect_from, now })
  await takeBackNotifications(trx, { network_id, now }, ancestor.number)
  await setCursor(trx, {
    network_id,
    block_number: ancestor.number,
    block_hash: ancestor.hash,
    update_time: now,
  })
}

type Notified = { transfers?: { transfer_state?: string }[] }

// Of so many at once the bodies are in memory.
const page = 500

/** Cancels what waits for blocks above a number, and follows up what was sent of them. */
async function takeBackNotifications(
  trx: Db,
  { network_id, now }: { network_id: number; now: Date },
  number: number,
): Promise<void> {
  await deleteEventsAbove(trx, network_id, number)
  await cancelWaitingAbove(trx, network_id, number)
  // All of them before the first page: webhooks are locked in the order of their ids.
  await lockNotifiedWebhooks(trx, { network_id, above: number }, [])
  let rows: DeliveryRow[] = []
  let count = 0
  do {
    const after = rows.at(-1)
    rows = await listSentAbove(trx, { network_id, number }, { after, limit: page })
    count += await notifyReorganized(trx, rows, now)
  } while (rows.length === page)
  if (count === 0) return
  await detachAbove(trx, network_id, number)
  await wakeCouriers(trx)
}

/** Follows up notifications of transfers; of those that had a follow-up already, that one. */
async function notifyReorganized(
  trx: Db,
  rows: readonly DeliveryRow[],
  now: Date,
): Promise<number> {
  const sent = rows.filter(({ data }) => (data as Notified).transfers)
  if (sent.length === 0) return 0
  const followed = await findExisting(
    trx,
    sent.map(({ webhook_history_id }) => followUpIdOf(webhook_history_id)),
  )
  const words = sent
    .filter(({ webhook_history_id }) => !followed.has(followUpIdOf(webhook_history_id)))
    .sort((a, b) => a.sequence! - b.sequence!)
    .map((row) => ({ row, webhook_history_id: hashId('reorged', row.webhook_history_id) }))
  await insertWaiting(
    trx,
    words.map(({ row, webhook_history_id }) => ({
      webhook_history_id,
      organization_id: row.organization_id,
      network_id: row.network_id,
      webhook_id: row.webhook_id,
      notification_type: row.notification_type,
      data: {},
      transaction_hash: row.transaction_hash,
      // Of no block any more: the next reorganization has nothing to say about it.
      block_number: null,
      due_block: 0,
      create_time: now,
    })),
  )
  const due = words.map(({ row, webhook_history_id }) => ({
    webhook_history_id,
    webhook_id: row.webhook_id,
    data: {
      ...(row.data as Notified),
      confirmations: 0,
      transfers: (row.data as Notified).transfers!.map((transfer) => ({
        ...transfer,
        transfer_state: 'TRANSFER_STATE_REORGED',
      })),
    },
  }))
  const notified = await releaseWaiting(trx, due, now)
  await deleteWaiting(
    trx,
    due.map(({ webhook_history_id }) => webhook_history_id).filter((id) => !notified.has(id)),
  )
  return sent.length
}
