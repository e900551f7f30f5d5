import type { BlockRef, Family } from '../../chains/chain.ts'
import { notificationTypes } from '../../contract/records/states.ts'
import type { WalletService } from '../../contract/variant.ts'
import { dueBlockOf } from '../../domain/wallets/transfer-view.ts'
import { keyOf } from '../../lib/bytes.ts'
import type { BulkRow } from '../../storage/pg/bulk.ts'
import type { Db } from '../../storage/pg/database.ts'
import { isAboutRows } from '../../storage/pg/errors.ts'
import { inSavepoint } from '../../storage/pg/savepoint.ts'
import {
  listDueWaiting,
  lockListedWebhooks,
  usualPage,
  usualWithBlock,
  type WaitingNotification,
} from '../../storage/webhooks/due-notifications.ts'
import { findPendingOrganizations } from '../../storage/webhooks/event-queues.ts'
import { type FanOutLimits, usualFanOut } from '../../storage/webhooks/fan-out-limits.ts'
import { insertEvents, type NewTransfersEvent } from '../../storage/webhooks/notification-events.ts'
import {
  deleteWaiting,
  deleteWithoutTransfers,
  findWebhooks,
  insertWaiting,
  postponeWaiting,
  releaseWaiting,
  wakeCouriers,
} from '../../storage/webhooks/notifications.ts'
import { type Described, type Noted, noteOnce, pairAtOnce } from './noted.ts'
import { inChainOrder, readBodies } from './notification-bodies.ts'
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
  return await insert(trx, context, added, (event) => {
    const { block_number, transaction_hash } = event
    const backfilled = ordinalsOf(event)
    return {
      block_number,
      key: ['backfilled', hashes.get(block_number)!, transaction_hash, backfilled.join()],
      data: { backfilled },
    }
  })
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
  describe: (event: Event) => Described,
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
    const noted = noteOnce(mine, webhooksOf, describe)
    if (noted.length === 0) continue
    // Asked once per block and only when something is to be written; most blocks write nothing.
    pending ??= await findPendingOrganizations(trx, 'notification_event', network_id, [
      ...organizations.keys(),
    ])
    const toCommon = ({ event, block_number, data }: Noted<Event>) => ({
      organization_id,
      network_id,
      notification_type: notificationTypes[service],
      // What the body is made of once it is due.
      data: { block_number: event.block_number, ...data },
      transaction_hash: event.transaction_hash,
      block_number,
      create_time: now,
    })
    const pairs = pending.has(organization_id)
      ? undefined
      : pairAtOnce(noted, webhooksOf, { limits, most })
    if (pairs)
      for (const { one, webhook } of pairs)
        waiting.push({
          ...toCommon(one),
          key: one.event_key,
          webhook_id: webhook.webhook_id,
          due_block: dueBlockOf(one.block_number, webhook.confirmation),
        })
    else
      for (const one of noted)
        later.push({
          ...toCommon(one),
          event_kind: 'TRANSFERS',
          event_key: one.event_key,
          wallet_ids: [...one.wallet_ids],
        })
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
  part: { perOrganization?: number } = {},
): Promise<Released> {
  const limits = due.limits ?? usualLimits
  // In turns of the organizations, the oldest block of each first.
  const listed = await listDueWaiting(trx, { ...due, ...part, limit: limits.notifications })
  return await releaseListed(trx, due, listed)
}

async function releaseListed(
  trx: Db,
  due: Due,
  { waiting, isMore }: Awaited<ReturnType<typeof listDueWaiting>>,
): Promise<Released> {
  if (waiting.length === 0) return { count: 0, isMore, organizations: 0 }
  const released = await releaseSome(trx, due, waiting)
  return { ...released, isMore: released.taken < waiting.length || isMore }
}

const idOf = ({ delivery }: { delivery: WaitingNotification }) => delivery.webhook_history_id

/** Releases as many of these as one transaction may release, and says how many it has looked at. */
async function releaseSome(
  trx: Db,
  due: Due,
  waiting: readonly WaitingNotification[],
): Promise<Omit<Released, 'isMore'> & { taken: number }> {
  const { transfers: limit } = due.limits ?? usualLimits
  const notifications = await readBodies(trx, { ...due, limit }, waiting)
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
  // Its webhook is gone, or retention has removed the transfers of something very old: there is nothing left to send.
  await deleteWaiting(
    trx,
    bodies.map(idOf).filter((id) => !notified.has(id)),
  )
  const empty = notifications.filter((one) => one.data.transfers.length === 0 && !early.has(one))
  await deleteWithoutTransfers(trx, empty.map(idOf), due)
  if (notified.size > 0) await wakeCouriers(trx)
  const organizations = new Set(notifications.map(({ delivery }) => delivery.organization_id)).size
  return { count: notified.size, organizations, taken: notifications.length }
}

/**
 * With a block, and without the organizations that have more due than a block may release of each. The block is stored
 * also where a notification cannot be: that is left to the pages between blocks.
 */
export async function releaseWithBlock(trx: Db, due: Due): Promise<Released> {
  const { notifications: limit, withBlock = usualWithBlock } = due.limits ?? usualLimits
  const listed = await listDueWaiting(trx, { ...due, limit, fewerThan: withBlock + 1 })
  // Most blocks release nothing.
  if (listed.waiting.length === 0) return { count: 0, isMore: listed.isMore, organizations: 0 }
  const released = await inSavepoint(trx, () => releaseListed(trx, due, listed))
  return 'value' in released ? released.value : { count: 0, isMore: true, organizations: 0 }
}

// What cannot be stored is tried again after so many blocks.
const failedBlocks = 100

/**
 * The same as `releaseDue` for a page of which something cannot be stored: each notification for itself, in the same order. One
 * that fails by itself waits for a later block, so that those behind it are sent. What would fail with every notification is
 * thrown: none of them is to wait so long, or be overtaken, because the database refused all of them for a moment.
 */
export async function releaseEach(
  trx: Db,
  due: Due,
  part: { perOrganization?: number } = {},
): Promise<Released & { failed: { webhook_history_id: string; error: unknown }[] }> {
  const limits = due.limits ?? usualLimits
  const listed = await listDueWaiting(trx, { ...due, ...part, limit: limits.notifications })
  const failed: { webhook_history_id: string; error: unknown }[] = []
  let count = 0
  // All at once: one by one they would not be locked in the order of their ids.
  await lockListedWebhooks(trx, due.network_id, listed.waiting)
  for (const one of await inChainOrder(trx, due.network_id, listed.waiting)) {
    const released = await inSavepoint(trx, () => releaseSome(trx, due, [one]))
    if ('value' in released) count += released.value.count
    else if (!isAboutRows(released.error)) throw released.error
    else failed.push({ webhook_history_id: one.webhook_history_id, error: released.error })
  }
  const due_block = due.head + failedBlocks
  await postponeWaiting(
    trx,
    failed.map(({ webhook_history_id }) => ({ webhook_history_id, due_block })),
  )
  const organizations = new Set(listed.waiting.map((one) => one.organization_id)).size
  return { count, isMore: listed.isMore, organizations, failed }
}
