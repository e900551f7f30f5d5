import type { BlockRef, Family } from '../../chains/chain.ts'
import { notificationTypes } from '../../contract/records/states.ts'
import type { WalletService } from '../../contract/variant.ts'
import {
  confirmationsOf,
  dueBlockOf,
  presentTransfer,
  type TransferRecord,
} from '../../domain/wallets/transfer-view.ts'
import { keyOf } from '../../lib/bytes.ts'
import type { BulkRow } from '../../storage/pg/bulk.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { ListedTransfer } from '../../storage/transfers/transfers.ts'
import {
  listDueWaiting,
  usualPage,
  usualWithBlock,
  type WaitingNotification,
} from '../../storage/webhooks/due-notifications.ts'
import { findPendingOrganizations } from '../../storage/webhooks/event-queues.ts'
import { type FanOutLimits, usualFanOut } from '../../storage/webhooks/fan-out-limits.ts'
import { insertEvents, type NewTransfersEvent } from '../../storage/webhooks/notification-events.ts'
import {
  deleteWaiting,
  findWebhooks,
  insertWaiting,
  listNotifiedTransfers,
  postponeWaiting,
  releaseWaiting,
  wakeCouriers,
} from '../../storage/webhooks/notifications.ts'
import { insertGenerations, toFollowUp, type Waiting } from './notification-rows.ts'

type NotifyContext = {
  network_id: number
  service: WalletService
  now: Date
  limits?: FanOutLimits | undefined
}

/** What a notification is about: one transaction, seen by one organization's wallets. */
type Event = Pick<
  BulkRow<'transfer'>,
  'organization_id' | 'wallet_id' | 'transaction_hash' | 'block_number'
>

/**
 * One waiting notification per webhook and transaction, whatever the number of its transfers. Says
 * whether some are left to be written later.
 */
export async function noteTransfers(
  trx: Db,
  context: NotifyContext,
  blocks: readonly BlockRef[],
  transfers: readonly Event[],
): Promise<boolean> {
  if (transfers.length === 0) return false
  const hashes = new Map(blocks.map(({ number, hash }) => [number, hash]))
  return await insert(trx, context, transfers, (event) => ({
    block_number: event.block_number,
    // With the hash: a transaction that comes back on another branch is notified again.
    key: [hashes.get(event.block_number)!, event.transaction_hash],
  }))
}

/** A further notification for records that a later block has changed (T: it bounced). */
export async function noteUpdates(
  trx: Db,
  context: NotifyContext,
  block: BlockRef,
  updated: readonly Event[],
): Promise<boolean> {
  if (updated.length === 0) return false
  return await insert(trx, context, updated, ({ transaction_hash }) => ({
    block_number: block.number,
    key: ['update', block.hash, transaction_hash],
  }))
}

/**
 * A further notification for records of blocks that were missed when they were new. It holds those
 * only: the rest of the transaction may have been notified before.
 */
export async function noteBackfilled(
  trx: Db,
  context: NotifyContext,
  blocks: readonly BlockRef[],
  added: readonly (Event & { ordinal: number })[],
): Promise<boolean> {
  if (added.length === 0) return false
  const hashes = new Map(blocks.map(({ number, hash }) => [number, hash]))
  const nameOf = ({ block_number, transaction_hash, organization_id }: Event) =>
    `${organization_id}/${block_number}/${keyOf(transaction_hash)}`
  const places = Map.groupBy(added, nameOf)
  const ordinalsOf = (event: Event): number[] =>
    [...new Set(places.get(nameOf(event))!.map(({ ordinal }) => ordinal))].sort((a, b) => a - b)
  return await insert(trx, context, added, (event) => ({
    block_number: event.block_number,
    key: [
      'backfilled',
      hashes.get(event.block_number)!,
      event.transaction_hash,
      ordinalsOf(event).join(),
    ],
    data: { backfilled: ordinalsOf(event) },
  }))
}

/**
 * Writes the notifications. Where an organization has many webhooks it writes one event for each
 * transaction instead, which is expanded outside of this database transaction (`fan-out.ts`). While
 * events of an organization wait to be expanded, all that follows waits behind them.
 */
async function insert(
  trx: Db,
  { network_id, service, now, limits = usualFanOut }: NotifyContext,
  events: readonly Event[],
  describe: (event: Event) => { block_number: number; key: (string | Buffer)[]; data?: object },
): Promise<boolean> {
  // One webhook more than may be written at once shows that there are too many, without listing
  // all.
  const most = Math.max(limits.inline, limits.perEvent)
  const kind = 'WEBHOOK_EVENT_TRANSFER'
  const webhooksOf = await findWebhooks(trx, network_id, events, kind, most + 1)
  const waiting: Waiting[] = []
  const later: NewTransfersEvent[] = []
  let pending: ReadonlySet<string> | undefined
  // Each organization decides for itself, so that one with many webhooks delays no other.
  const organizations = Map.groupBy(events, (event) => event.organization_id)
  for (const [organization_id, mine] of organizations) {
    const rows = new Map<string, Waiting>()
    const noted = new Map<string, NewTransfersEvent>()
    let isWide = false
    // `rows` are the notifications, `noted` the events that stand for them. Which of both is stored
    // is decided per organization at the end.
    for (const event of mine) {
      const webhooks = webhooksOf(event)
      if (webhooks.length === 0) continue
      // From here on only events are collected: the organization has too many webhooks to be
      // written with the block.
      isWide ||= webhooks.length > most
      const { block_number, key, data } = describe(event)
      const event_key = key.map((part) => Buffer.from(part).toString('hex'))
      const known = event_key.join()
      const common = {
        organization_id,
        network_id,
        notification_type: notificationTypes[service],
        // What the body is made of once it is due.
        data: { block_number: event.block_number, ...data },
        transaction_hash: event.transaction_hash,
        block_number,
        create_time: now,
      }
      const seen = noted.get(known)
      if (!seen)
        noted.set(known, {
          ...common,
          event_kind: 'TRANSFERS',
          event_key,
          wallet_ids: [event.wallet_id],
        })
      else if (!seen.wallet_ids.includes(event.wallet_id)) seen.wallet_ids.push(event.wallet_id)
      if (isWide) continue
      for (const { webhook_id, confirmation } of webhooks)
        if (!rows.has(`${webhook_id}/${known}`))
          rows.set(`${webhook_id}/${known}`, {
            ...common,
            key: event_key,
            webhook_id,
            due_block: dueBlockOf(block_number, confirmation),
          })
    }
    if (noted.size === 0) continue
    // Asked once per block and only when something is to be written; most blocks write nothing.
    pending ??= await findPendingOrganizations(trx, 'notification_event', network_id, [
      ...organizations.keys(),
    ])
    const isLater =
      isWide ||
      pending.has(organization_id) ||
      rows.size > Math.max(limits.inline, limits.perEvent * noted.size)
    if (isLater) later.push(...noted.values())
    else waiting.push(...rows.values())
  }
  await insertGenerations(trx, waiting)
  await insertEvents(trx, later)
  return later.length > 0
}

/** How much one database transaction releases at most. */
export type ReleaseLimits = {
  notifications: number
  /** In all of these notifications together; one alone may have more. */
  transfers: number
  /** Of one organization with a block; one that has more due is left to the pages between blocks. */
  withBlock?: number
}

/** What one database transaction releases, unless something else is asked for. */
export const usualLimits: ReleaseLimits = { notifications: usualPage, transfers: 10_000 }

type Due = { network_id: number; chain: Family; head: number; now: Date; limits?: ReleaseLimits }

/** What was released, of how many organizations, and whether something is left for the next database transaction. */
export type Released = { count: number; isMore: boolean; organizations: number }

/**
 * Makes the notifications real whose confirmation this head has reached: body, number and time. Runs
 * in a transaction that holds the cursor, so that what is sent is on the chain as it is stored. One
 * page at a time, because tenants decide how many there are: the rest stays due.
 */
export async function releaseDue(
  trx: Db,
  due: Due,
  part: { perOrganization?: number; fewerThan?: number } = {},
): Promise<Released> {
  const limits = due.limits ?? usualLimits
  // In turns of the organizations, the oldest block of each first.
  const listed = await listDueWaiting(trx, { ...due, ...part, limit: limits.notifications })
  const { waiting } = listed
  if (waiting.length === 0) return { count: 0, isMore: listed.isMore, organizations: 0 }
  const page = await readPage(trx, due, waiting)
  // Once for each transfer, however many webhooks are notified of it.
  const records = new Map<ListedTransfer, TransferRecord>()
  const present = (row: ListedTransfer): TransferRecord => {
    if (!records.has(row)) records.set(row, presentTransfer(due.chain, row, due.head))
    return records.get(row)!
  }
  const shown = { ...due, present }
  const notifications = page.map(({ delivery, mine }) => toNotification(delivery, mine, shown))
  // The wallet has asked for more confirmations since: nothing has changed that could be sent.
  const early = new Set(
    notifications.filter(
      ({ delivery, pending }) => delivery.pending !== null && delivery.pending === pending.count,
    ),
  )
  await postponeWaiting(
    trx,
    [...early].map(({ delivery: { webhook_history_id }, pending: { due_block } }) => ({
      webhook_history_id,
      due_block,
    })),
  )
  const bodies = notifications.filter((one) => one.data.transfers.length > 0 && !early.has(one))
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
    followed.map(({ delivery, pending }) => toFollowUp(delivery, pending, due)),
  )
  const kept = new Set([...notified, ...[...early].map((one) => one.delivery.webhook_history_id)])
  // Retention may have removed the transfers of something very old, or its webhook is gone: there is
  // nothing left to send.
  await deleteWaiting(
    trx,
    page.map(({ delivery }) => delivery.webhook_history_id).filter((id) => !kept.has(id)),
  )
  if (notified.size > 0) await wakeCouriers(trx)
  const isMore = page.length < waiting.length || listed.isMore
  const organizations = new Set(page.map(({ delivery }) => delivery.organization_id)).size
  return { count: notified.size, isMore, organizations }
}

/** With a block, and without the organizations that have more due than a block may release of each. */
export const releaseWithBlock = (trx: Db, due: Due): Promise<Released> =>
  releaseDue(trx, due, { fewerThan: (due.limits?.withBlock ?? usualWithBlock) + 1 })

type Bodied = { delivery: WaitingNotification; mine: ListedTransfer[] }

/** As many of the notifications with their transfers as one transaction may release, at least one. */
async function readPage(
  trx: Db,
  due: Due,
  waiting: readonly WaitingNotification[],
): Promise<Bodied[]> {
  const { transfers: limit } = due.limits ?? usualLimits
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
  waiting: readonly WaitingNotification[],
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
  { wallet_id, backfilled }: WaitingNotification,
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
  delivery: WaitingNotification
  data: { confirmations: number; transfers: TransferRecord[] }
  /** How many transfers are shown as pending, and the first block at which one of them is confirmed. */
  pending: { count: number; due_block: number }
}

function toNotification(
  delivery: WaitingNotification,
  transfers: readonly ListedTransfer[],
  { chain, head, present }: Due & { present(row: ListedTransfer): TransferRecord },
): Notification {
  const { transaction_hash, transfer_block, backfilled, sink, pending } = delivery
  const records = transfers.map(present)
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
