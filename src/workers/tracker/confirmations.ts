import type { Family } from '../../chains/chain.ts'
import {
  confirmationsOf,
  dueBlockOf,
  presentTransfer,
  type TransferRecord,
} from '../../domain/wallets/transfer-view.ts'
import { keyOf } from '../../lib/bytes.ts'
import { hashId } from '../../lib/hash-id.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { ListedTransfer } from '../../storage/transfers/transfers.ts'
import {
  listDueWaiting,
  usualPage,
  type WaitingDelivery,
} from '../../storage/webhooks/due-notifications.ts'
import {
  deleteWaiting,
  insertWaiting,
  listNotifiedTransfers,
  postponeWaiting,
  releaseWaiting,
  wakeCouriers,
} from '../../storage/webhooks/notifications.ts'

/** How much one database transaction releases at most. */
export type ReleaseLimits = {
  notifications: number
  /** In all of these notifications together; one alone may have more. */
  transfers: number
}

const defaultLimits: ReleaseLimits = { notifications: usualPage, transfers: 10_000 }

type Due = { network_id: number; chain: Family; head: number; now: Date; limits?: ReleaseLimits }

/** What was released, and whether something is left for the next database transaction. */
export type Released = { count: number; isMore: boolean }

/**
 * Makes the notifications real whose confirmation this head has reached: body, number and time. Runs
 * in a transaction that holds the cursor, so that what is sent is on the chain as it is stored. One
 * page at a time, because tenants decide how many there are: the rest stays due.
 */
export async function releaseDue(trx: Db, due: Due): Promise<Released> {
  const limits = due.limits ?? defaultLimits
  const listed = await listDueWaiting(trx, { ...due, limit: limits.notifications })
  const { waiting } = listed
  if (waiting.length === 0) return { count: 0, isMore: false }
  const page = await readPage(trx, due, waiting)
  const notifications = page.map(({ delivery, mine }) => toNotification(delivery, mine, due))
  // The wallet has asked for more confirmations since: nothing has changed that could be sent.
  const early = notifications.filter(
    ({ delivery, pending }) => delivery.pending !== null && delivery.pending === pending.count,
  )
  await postponeWaiting(
    trx,
    early.map(({ delivery: { webhook_history_id }, pending: { due_block } }) => ({
      webhook_history_id,
      due_block,
    })),
  )
  const bodies = notifications.filter(
    (one) => one.data.transfers.length > 0 && !early.includes(one),
  )
  const notified = await releaseWaiting(
    trx,
    bodies.map(({ delivery: { webhook_history_id, webhook_id }, data }) => ({
      webhook_history_id,
      webhook_id,
      data,
    })),
    due.now,
  )
  const followed = bodies.filter(
    ({ delivery, pending }) => pending.count > 0 && notified.has(delivery.webhook_history_id),
  )
  await insertWaiting(
    trx,
    followed.map((one) => toFollowUp(one, due)),
  )
  const kept = new Set([...notified, ...early.map((one) => one.delivery.webhook_history_id)])
  // Retention may have removed the transfers of something very old, or its webhook is gone: there is
  // nothing left to send.
  await deleteWaiting(
    trx,
    page.map(({ delivery }) => delivery.webhook_history_id).filter((id) => !kept.has(id)),
  )
  if (notified.size > 0) await wakeCouriers(trx)
  const isMore = page.length < waiting.length || listed.isMore
  return { count: notified.size, isMore }
}

type Bodied = { delivery: WaitingDelivery; mine: ListedTransfer[] }

/** As many of the notifications with their transfers as one transaction may release, at least one. */
async function readPage(trx: Db, due: Due, waiting: readonly WaitingDelivery[]): Promise<Bodied[]> {
  const { transfers: limit } = due.limits ?? defaultLimits
  let some = waiting
  for (;;) {
    const isOne = some.length === 1
    const most = isOne ? Number.MAX_SAFE_INTEGER : limit
    const transfers = await listNotifiedTransfers(trx, due.network_id, some, most)
    if (isOne || transfers.length < limit) return takePage(some, transfers, limit)
    // A transaction can hold any number of transfers, so that only reading shows how many fit.
    some = some.slice(0, Math.ceil(some.length / 2))
  }
}

function takePage(
  waiting: readonly WaitingDelivery[],
  transfers: readonly ListedTransfer[],
  limit: number,
): Bodied[] {
  const found = Map.groupBy(transfers, (row) =>
    nameOf(row.organization_id, row.block_number, row.transaction_hash),
  )
  const page: Bodied[] = []
  let count = 0
  for (const delivery of waiting) {
    const { organization_id, transfer_block, transaction_hash } = delivery
    const all = found.get(nameOf(organization_id, transfer_block, transaction_hash)) ?? []
    const mine = transfersOf(delivery, all)
    count += mine.length
    if (page.length > 0 && count > limit) break
    page.push({ delivery, mine })
  }
  return page.sort(compare)
}

const nameOf = (organization_id: string, block_number: number, transaction_hash: Buffer): string =>
  `${organization_id}/${block_number}/${keyOf(transaction_hash)}`

/** The transfers that a notification holds: of its wallets, each movement once per wallet. */
function transfersOf(
  { wallet_id, backfilled }: WaitingDelivery,
  transfers: readonly ListedTransfer[],
): ListedTransfer[] {
  const movements = new Map<string, ListedTransfer>()
  for (const row of transfers) {
    const mine =
      (wallet_id === null || wallet_id === row.wallet_id) &&
      (backfilled === null || backfilled.includes(row.ordinal))
    if (!mine) continue
    const key = `${row.wallet_id}/${row.ordinal}`
    const outgoing = movements.get(key)
    // Both ends are in the wallet: one record, the outgoing one (docs/decisions/transfers.md).
    movements.set(key, outgoing ? { ...outgoing, is_internal: true } : row)
  }
  return [...movements.values()]
}

/** In the order of the chain. */
const compare = (a: Bodied, b: Bodied): number =>
  a.delivery.block_number - b.delivery.block_number ||
  (a.mine[0]?.ordinal ?? 0) - (b.mine[0]?.ordinal ?? 0)

type Notification = {
  delivery: WaitingDelivery
  data: { confirmations: number; transfers: TransferRecord[] }
  /** How many transfers are shown as pending, and the first block at which one of them is confirmed. */
  pending: { count: number; due_block: number }
}

function toNotification(
  delivery: WaitingDelivery,
  transfers: readonly ListedTransfer[],
  { chain, head }: Due,
): Notification {
  const { transaction_hash, transfer_block, backfilled, sink, pending } = delivery
  const records = transfers.map((row) => presentTransfer(chain, row, head))
  return {
    delivery,
    data: {
      [chain.transactionField]: chain.formatTransactionHash(transaction_hash),
      confirmations: confirmationsOf(transfer_block, head),
      ...(backfilled && { backfilled: true }),
      // A stream distinguishes the first event of a transfer from its confirmation.
      ...(sink !== null && pending !== null && { confirmed: true }),
      transfers: records,
    },
    // Only where the record shows it: in other variants a second notification would contain nothing new.
    pending: pendingOf(
      transfers.filter((_, at) => records[at]!.transfer_state === 'TRANSFER_STATE_PENDING'),
    ),
  }
}

const pendingOf = (rows: readonly ListedTransfer[]): Notification['pending'] => ({
  count: rows.length,
  due_block: rows.reduce(
    (first, row) => Math.min(first, dueBlockOf(row.block_number, row.confirmation)),
    Number.MAX_SAFE_INTEGER,
  ),
})

/** The id of the notification that follows one of which something was pending. */
export const followUpIdOf = (webhook_history_id: string): string =>
  // Derived, so that a block that is stored again writes no second follow-up.
  hashId('confirmed', webhook_history_id)

/** What was sent as pending is followed by a notification when the first of it is confirmed. */
function toFollowUp({ delivery, pending }: Notification, { network_id, now }: Due) {
  const { organization_id, webhook_id, notification_type, transaction_hash, block_number } =
    delivery
  const { transfer_block, backfilled } = delivery
  return {
    webhook_history_id: followUpIdOf(delivery.webhook_history_id),
    organization_id,
    network_id,
    webhook_id,
    notification_type,
    data: {
      block_number: transfer_block,
      pending: pending.count,
      ...(backfilled && { backfilled }),
    },
    transaction_hash,
    block_number,
    due_block: pending.due_block,
    create_time: now,
  }
}
