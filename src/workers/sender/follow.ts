import type { BlockRef, ChainBlock } from '../../chains/chain.ts'
import { moveTransaction } from '../../domain/transactions/move.ts'
import { keyOf } from '../../lib/bytes.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  hasOpenTransactions,
  lockConfirmed,
  lockDecidedAbove,
  lockOnTheWay,
} from '../../storage/transactions/open.ts'
import {
  dueBlockOf,
  type TransactionRow,
  updateTransaction,
} from '../../storage/transactions/transactions.ts'
import { lockDueWebhooks } from '../../storage/webhooks/due-notifications.ts'
import { type FanOutLimits, usualFanOut } from '../../storage/webhooks/fan-out-limits.ts'
import { lockRetractedWebhooks, type Removed } from '../../storage/webhooks/retractions.ts'
import { notifyOfStates } from '../../storage/webhooks/state-notifications.ts'

type FollowContext = {
  network_id: number
  now: Date
  /** How many notifications are written with a block. */
  limits?: FanOutLimits | undefined
}

/**
 * Takes managed transactions along with the blocks that are being stored, in the same database
 * transaction: what is mined, what has its confirmation, whose nonce another transaction took. Says whether
 * notifications are left to be written later.
 */
export async function followBlocks(
  trx: Db,
  { network_id, now, limits = usualFanOut }: FollowContext,
  blocks: readonly ChainBlock[],
): Promise<boolean> {
  // A chain without managed transactions costs no statement, and one without open ones a single
  // look-up.
  if (!blocks.some((block) => block.sent)) return false
  if (!(await hasOpenTransactions(trx, network_id))) return false
  const sent = blocks.flatMap((block) => block.sent ?? [])
  // Locks the rows. The lock order puts transactions after the cursor and before webhooks.
  const rows = await lockOnTheWay(trx, network_id, sent)
  const nameOf = (from: Buffer, nonce: number) => `${keyOf(from)}/${nonce}`
  // By sender and nonce, not by hash: another transaction with the same nonce decides the row too.
  const waiting = Map.groupBy(rows, ({ from, nonce }) => nameOf(from, nonce))
  const moved: TransactionRow[] = []
  for (const block of waiting.size > 0 ? blocks : [])
    for (const { from, nonce, failed, hash } of block.sent ?? [])
      for (const row of waiting.get(nameOf(from, nonce)) ?? []) {
        const decided = await decideBy(trx, row, { hash: hash(), block, failed }, now)
        if (decided) moved.push(decided)
      }
  const head = blocks.at(-1)!.number
  moved.push(...(await confirm(trx, { network_id, now }, head)))
  const { isLeft } = await notifyOfStates(trx, moved, now, {
    limits,
    // With those that the same database transaction will notify of transfers.
    lock: (atOnce) => lockDueWebhooks(trx, { network_id, head }, atOnce),
  })
  return isLeft
}

/** Writes down that a block holds a transaction with the nonce; says how it moved, if it did. */
export async function decideBy(
  trx: Db,
  row: TransactionRow,
  use: { hash: Buffer; block: BlockRef; failed: boolean },
  now: Date,
): Promise<TransactionRow | undefined> {
  const { number, hash: block_hash } = use.block
  if (row.transaction_hash?.equals(use.hash))
    return await moveTransaction(trx, row, {
      event: 'mined',
      now,
      change: {
        block_number: number,
        block_hash,
        due_block: dueBlockOf(number),
        receipt_status: use.failed ? 0 : 1,
        replaced_by: null,
        replaced_block_number: null,
        next_broadcast_time: null,
        last_error: null,
      },
    })
  // Not lost yet: the block may leave the chain.
  await updateTransaction(trx, row, {
    replaced_by: use.hash,
    replaced_block_number: number,
    due_block: dueBlockOf(number),
    next_broadcast_time: null,
  })
  return undefined
}

/** Ends what a head has confirmed. */
export async function confirm(
  trx: Db,
  { network_id, now }: FollowContext,
  head: number,
): Promise<TransactionRow[]> {
  const moved: TransactionRow[] = []
  for (const row of await lockConfirmed(trx, network_id, head)) {
    const done = row.receipt_status === 0 ? ('reverted' as const) : ('confirmed' as const)
    // A row that is confirmed but not mined lost its nonce to another transaction.
    const event = row.transaction_state === 'TRANSACTION_STATE_MINED' ? done : 'replaced'
    moved.push(await moveTransaction(trx, row, { event, now }))
  }
  return moved
}

/**
 * Reverts what removed blocks decided, and lets the sender continue with it at once. Says whether notifications
 * are left to be written later.
 */
export async function unfollowAbove(
  trx: Db,
  { network_id, now, limits = usualFanOut }: FollowContext,
  removed: Removed,
): Promise<boolean> {
  const moved: TransactionRow[] = []
  for (const row of await lockDecidedAbove(trx, network_id, removed.above)) {
    const change = {
      block_number: null,
      block_hash: null,
      receipt_status: null,
      replaced_by: null,
      replaced_block_number: null,
      due_block: null,
      next_broadcast_time: now,
    }
    const wasDecided =
      row.block_number !== null || row.transaction_state === 'TRANSACTION_STATE_REPLACED'
    if (wasDecided)
      moved.push(
        await moveTransaction(trx, row, {
          event: 'reorganized',
          now,
          change: { ...change, sent_time: now },
        }),
      )
    else await updateTransaction(trx, row, change)
  }
  const { isLeft } = await notifyOfStates(trx, moved, now, {
    limits,
    // With those that the same database transaction will notify of the reorganization.
    lock: (atOnce) => lockRetractedWebhooks(trx, removed, atOnce),
  })
  return isLeft
}
