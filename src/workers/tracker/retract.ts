import { hashId } from '../../lib/hash-id.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import {
  findPendingOrganizations,
  type ReorganizationEvent,
} from '../../storage/webhooks/event-queues.ts'
import { type FanOutLimits, usualFanOut } from '../../storage/webhooks/fan-out-limits.ts'
import { deleteEventsAbove, insertEvents } from '../../storage/webhooks/notification-events.ts'
import {
  type DeliveryRow,
  deleteWaiting,
  insertWaiting,
  releaseWaiting,
  wakeCouriers,
} from '../../storage/webhooks/notifications.ts'
import {
  countNotifiedAbove,
  deleteWaitingAbove,
  detachDeliveries,
  findBeyondBytes,
  findExisting,
  listSentAbove,
  lockRetractedWebhooks,
  type PageBounds,
  type Removed,
} from '../../storage/webhooks/retractions.ts'
import { mostPageBytes } from './notification-bodies.ts'
import { followUpIdOf } from './notification-rows.ts'

/** Whose notifications a rollback retracts itself, and whether it has left others to the workers. */
export type RetractionPlan = { removed: Removed; isLeft: boolean }

/**
 * Decides whose notifications of removed blocks the rollback retracts itself. For an organization with many
 * of them, or with bodies that are too long for one page, it stores one event, so that the rollback is as short
 * for all others; `fan-out.ts` retracts them page by page. Until then the notifications of the new branch wait behind that event, and none of the
 * removed blocks is released (`duePage`).
 */
export async function planRetractions(
  trx: Db,
  context: { network_id: number; now: Date; limits?: FanOutLimits | undefined },
  above: number,
): Promise<RetractionPlan> {
  const { network_id, now, limits = usualFanOut } = context
  // Among them reorganizations of later blocks only: this one includes them.
  await deleteEventsAbove(trx, network_id, above)
  // One above the limit is enough to decide; an exact count of a large organization would be slow.
  const counts = await countNotifiedAbove(trx, { network_id, above }, limits.inline + 1)
  const pending = await findPendingOrganizations(
    trx,
    'notification_event',
    network_id,
    counts.map(({ organization_id }) => organization_id),
  )
  // Where events of the organization wait, its retraction waits behind them. Otherwise it would
  // overtake notifications of lower blocks.
  const few = counts.filter(
    ({ organization_id, count }) => count <= limits.inline && !pending.has(organization_id),
  )
  const ofFew = {
    ...{ network_id, above },
    organization_ids: few.map(({ organization_id }) => organization_id),
  }
  // Of all of them together: they share one transaction.
  const long = await findBeyondBytes(trx, ofFew, mostPageBytes)
  const organization_ids = ofFew.organization_ids.filter((id) => !long.has(id))
  const atOnce = new Set(organization_ids)
  const later = counts.filter(({ organization_id }) => !atOnce.has(organization_id))
  await insertEvents(
    trx,
    later.map(({ organization_id }) => ({
      ...{ network_id, organization_id, event_kind: 'REORGANIZATION' as const },
      block_number: above + 1,
      create_time: now,
    })),
  )
  return { removed: { ...ofFew, organization_ids }, isLeft: later.length > 0 }
}

// Of so many at once the bodies are in memory.
const page: PageBounds = { rows: 500, bytes: mostPageBytes }

/** Retracts all notifications of removed blocks of the planned organizations. */
export async function retractAll(trx: Db, removed: Removed, now: Date): Promise<void> {
  if (removed.organization_ids.length === 0) return
  await deleteWaitingAbove(trx, removed)
  // All of them before the first page: webhooks are locked in the order of their ids.
  await lockRetractedWebhooks(trx, removed, [])
  let taken: Awaited<ReturnType<typeof takeSent>>
  do {
    taken = await takeSent(trx, removed, page)
    await notifyReorganized(trx, taken.rows, now)
  } while (taken.isMore)
}

/**
 * Deletes a page of the waiting notifications of removed blocks, then detaches a page of those that were
 * sent. `notifyReorganized` is to be called with the result in the same transaction. Says whether all is done.
 */
export async function retractPage(
  trx: Db,
  { network_id, organization_id }: WalletScope,
  { block_number }: ReorganizationEvent,
  { rows: limit, organizations }: { rows: number; organizations: number },
): Promise<{ rows: DeliveryRow[]; isDone: boolean }> {
  const removed = { network_id, above: block_number - 1, organization_ids: [organization_id] }
  const left = limit - (await deleteWaitingAbove(trx, removed, limit))
  if (left === 0) return { rows: [], isDone: false }
  // The organizations of one transaction share its bytes.
  const bytes = Math.floor(mostPageBytes / organizations)
  const { rows, isMore } = await takeSent(trx, removed, { rows: left, bytes })
  return { rows, isDone: !isMore }
}

async function takeSent(
  trx: Db,
  removed: Removed,
  bounds: PageBounds,
): Promise<{ rows: DeliveryRow[]; isMore: boolean }> {
  const listed = await listSentAbove(trx, removed, bounds)
  await detachDeliveries(
    trx,
    listed.rows.map(({ webhook_history_id }) => webhook_history_id),
  )
  return listed
}

type Notified = { transfers?: { transfer_state?: string }[] }

/** Sends a REORGED notification after each of these; after one that has a follow-up, that one gets it. */
export async function notifyReorganized(
  trx: Db,
  rows: readonly DeliveryRow[],
  now: Date,
): Promise<void> {
  // Only notifications of transfers are retracted here; `unfollowAbove` notifies of managed
  // transactions.
  const sent = rows.filter(({ data }) => (data as Notified).transfers)
  if (sent.length === 0) return
  const followed = await findExisting(
    trx,
    sent.map(({ webhook_history_id }) => followUpIdOf(webhook_history_id)),
  )
  const retractions = sent
    .filter(({ webhook_history_id }) => !followed.has(followUpIdOf(webhook_history_id)))
    .map((row) => ({ row, webhook_history_id: hashId('reorged', row.webhook_history_id) }))
  await insertWaiting(
    trx,
    retractions.map(({ row, webhook_history_id }) => ({
      webhook_history_id,
      organization_id: row.organization_id,
      network_id: row.network_id,
      webhook_id: row.webhook_id,
      notification_type: row.notification_type,
      data: {},
      transaction_hash: row.transaction_hash,
      // Without a block: the next reorganization does not retract it.
      block_number: null,
      due_block: 0,
      create_time: now,
    })),
  )
  const due = retractions.map(({ row, webhook_history_id }) => ({
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
  // A webhook that was deleted meanwhile gets nothing; its waiting rows are removed below.
  const notified = await releaseWaiting(trx, due, now)
  await deleteWaiting(
    trx,
    due.map(({ webhook_history_id }) => webhook_history_id).filter((id) => !notified.has(id)),
  )
  if (notified.size > 0) await wakeCouriers(trx)
}
