import type { BlockRef, ChainBlock } from '../../chains/chain.ts'
import {
  type BlockEvent,
  moveTransaction,
  moveTransactions,
} from '../../domain/transactions/move.ts'
import { keyOf } from '../../lib/bytes.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  type ConfirmedPart,
  hasConfirmed,
  hasOpenTransactions,
  lockConfirmed,
  lockDecidedAbove,
  lockOnTheWay,
} from '../../storage/transactions/open.ts'
import {
  dueBlockOf,
  type TransactionRow,
  updateTransaction,
  updateTransactions,
} from '../../storage/transactions/transactions.ts'
import {
  lockDueWebhooks,
  usualPage,
  usualWithBlock,
} from '../../storage/webhooks/due-notifications.ts'
import { type FanOutLimits, usualFanOut } from '../../storage/webhooks/fan-out-limits.ts'
import { lockRetractedWebhooks, type Removed } from '../../storage/webhooks/retractions.ts'
import { notifyOfStates } from '../../storage/webhooks/state-notifications.ts'

type FollowContext = {
  network_id: number
  now: Date
  /** How many notifications are written with a block. */
  limits?: FanOutLimits | undefined
  /** How many transactions are confirmed with a block. */
  part?: ConfirmedPart | undefined
}

/** How much one database transaction confirms: as many as it releases notifications. */
export const confirmedPart = (
  limits: { notifications: number } | undefined,
  perOrganization = usualWithBlock,
): ConfirmedPart => ({
  limit: limits?.notifications ?? usualPage,
  perOrganization: Math.max(1, perOrganization),
})

/**
 * Takes managed transactions along with the blocks that are being stored, in the same database
 * transaction: what is mined, what has its confirmation, whose nonce another transaction took. Says whether
 * something is left: confirmations beyond a page, or notifications to be written.
 */
export async function followBlocks(
  trx: Db,
  { network_id, now, limits = usualFanOut, part }: FollowContext,
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
  const confirmed = await confirmPage(trx, { network_id, now, part }, head)
  moved.push(...confirmed.moved)
  const { isLeft } = await notifyOfStates(trx, moved, now, {
    limits,
    // With those that the same database transaction will notify of transfers.
    lock: (atOnce) => lockDueWebhooks(trx, { network_id, head }, atOnce),
  })
  return isLeft || confirmed.isMore
}

/**
 * Confirms and notifies one page of what blocks have left. The cursor must be locked, and `head` be its block. Says of how many
 * organizations the page was, and whether there is more.
 */
export async function confirmLeft(
  trx: Db,
  { network_id, now, limits = usualFanOut, part }: FollowContext,
  head: number,
): Promise<{ organizations: number; isMore: boolean }> {
  const { moved, isMore } = await confirmPage(trx, { network_id, now, part }, head)
  const { isLeft } = await notifyOfStates(trx, moved, now, { limits })
  const organizations = new Set(moved.map(({ organization_id }) => organization_id)).size
  return { organizations, isMore: isMore || isLeft }
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

async function confirmPage(
  trx: Db,
  { network_id, now, part = confirmedPart(undefined) }: FollowContext,
  head: number,
): Promise<{ moved: TransactionRow[]; isMore: boolean }> {
  if (!(await hasConfirmed(trx, network_id, head))) return { moved: [], isMore: false }
  const { rows, isMore } = await lockConfirmed(trx, { network_id, head, ...part })
  return { moved: await confirm(trx, rows, now), isMore }
}

/** Ends transactions that a head has confirmed. */
export async function confirm(
  trx: Db,
  rows: readonly TransactionRow[],
  now: Date,
): Promise<TransactionRow[]> {
  const eventOf = ({ transaction_state, receipt_status }: TransactionRow): BlockEvent => {
    // A row that is confirmed but not mined lost its nonce to another transaction.
    if (transaction_state !== 'TRANSACTION_STATE_MINED') return 'replaced'
    return receipt_status === 0 ? 'reverted' : 'confirmed'
  }
  return await moveTransactions(trx, rows, { eventOf, now })
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
  const rows = await lockDecidedAbove(trx, network_id, removed.above)
  const change = {
    block_number: null,
    block_hash: null,
    receipt_status: null,
    replaced_by: null,
    replaced_block_number: null,
    due_block: null,
    next_broadcast_time: now,
  }
  const { decided = [], others = [] } = Object.groupBy(rows, (row) =>
    row.block_number !== null || row.transaction_state === 'TRANSACTION_STATE_REPLACED'
      ? 'decided'
      : 'others',
  )
  await updateTransactions(trx, others, change)
  const moved = await moveTransactions(trx, decided, {
    eventOf: () => 'reorganized',
    now,
    change: { ...change, sent_time: now },
  })
  const { isLeft } = await notifyOfStates(trx, moved, now, {
    limits,
    // With those that the same database transaction will notify of the reorganization.
    lock: (atOnce) => lockRetractedWebhooks(trx, removed, atOnce),
  })
  return isLeft
}
