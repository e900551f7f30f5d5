import type { BlockRef } from '../../chains/chain.ts'
import { notificationTypes } from '../../contract/records/states.ts'
import type { WalletService } from '../../contract/variant.ts'
import { dueBlockOf } from '../../domain/wallets/transfer-view.ts'
import { keyOf } from '../../lib/bytes.ts'
import type { BulkRow } from '../../storage/pg/bulk.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findPendingOrganizations } from '../../storage/webhooks/event-queues.ts'
import { type FanOutLimits, usualFanOut } from '../../storage/webhooks/fan-out-limits.ts'
import { insertEvents, type NewTransfersEvent } from '../../storage/webhooks/notification-events.ts'
import { findWebhooks } from '../../storage/webhooks/notifications.ts'
import { insertGenerations, type Waiting } from './notification-rows.ts'

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
  const most = Math.max(limits.inline, limits.perEvent)
  const kind = 'WEBHOOK_EVENT_TRANSFER'
  const webhooksOf = await findWebhooks(trx, network_id, events, kind, most + 1)
  const waiting: Waiting[] = []
  const later: NewTransfersEvent[] = []
  let pending: ReadonlySet<string> | undefined
  const organizations = Map.groupBy(events, (event) => event.organization_id)
  for (const [organization_id, mine] of organizations) {
    const rows = new Map<string, Waiting>()
    const noted = new Map<string, NewTransfersEvent>()
    let isWide = false
    for (const event of mine) {
      const webhooks = webhooksOf(event)
      if (webhooks.length === 0) continue
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
