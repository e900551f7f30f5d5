import { dueBlockOf } from '../../domain/wallets/transfer-view.ts'
import type { Db } from '../../storage/pg/database.ts'
import { lockCursor } from '../../storage/tracking/blocks.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import {
  advanceEvents,
  type EventProgress,
  type EventWebhook,
  hasEvents,
  listEventOrganizations,
  listEvents,
  listEventWebhooks,
  type NotificationEvent,
} from '../../storage/webhooks/notification-events.ts'
import { hasStateEvents } from '../../storage/webhooks/state-events.ts'
import { insertGenerations, type Waiting } from '../tracker/notification-rows.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { expandStates } from './state-fan-out.ts'

// Each page of notifications is shared by so many organizations at most.
const organizationsAtOnce = 10
// So many events of an organization are looked at for one page.
const eventsAtOnce = 100

/**
 * Expands events into notifications, one page in one database transaction. Each organization has its
 * part of the page, so that one with thousands of webhooks delays no other. Says whether there is more.
 */
export async function expandPage(
  tools: Pick<TrackerTools, 'db' | 'clock' | 'network_id' | 'lease'>,
  limit: number,
): Promise<boolean> {
  const { db, clock, network_id, lease } = tools
  const isPending = async (trx: Db) =>
    (await hasEvents(trx, network_id)) || (await hasStateEvents(trx, network_id))
  // Without a lock: a block that stores events wakes this again.
  if (!(await isPending(db))) return false
  return await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    // No block is stored or taken back meanwhile.
    await lockCursor(trx, network_id)
    const organizations = await listEventOrganizations(trx, network_id, organizationsAtOnce)
    const part = Math.max(1, Math.floor(limit / Math.max(1, organizations.length)))
    for (const organization_id of organizations)
      await expandSome(trx, { organization_id, network_id }, part)
    await expandStates(trx, { network_id, now: new Date(clock.now()) }, limit)
    return await isPending(trx)
  })
}

async function expandSome(trx: Db, scope: WalletScope, limit: number): Promise<void> {
  const events = await listEvents(trx, scope, Math.min(limit, eventsAtOnce))
  const rows: Waiting[] = []
  const done: number[] = []
  let partly: EventProgress | undefined
  let left = limit
  // One event first: its number of webhooks says how many more to look at.
  for (let at = 0, size = 1; at < events.length && left > 0; ) {
    const some = events.slice(at, at + size)
    at += some.length
    const numbers = some.map(({ event_number }) => event_number)
    const asked = left
    const found = Map.groupBy(
      await listEventWebhooks(trx, scope, numbers, asked),
      ({ event_number }) => event_number,
    )
    for (const event of some) {
      const webhooks = found.get(event.event_number) ?? []
      const taken = webhooks.slice(0, left)
      rows.push(
        ...taken.filter((webhook) => wants(webhook)).map((webhook) => toRow(event, webhook)),
      )
      left -= taken.length
      if (webhooks.length < asked && taken.length === webhooks.length) done.push(event.event_number)
      else {
        const last = taken.at(-1)
        if (last) partly = { event_number: event.event_number, after_webhook_id: last.webhook_id }
        left = 0
        break
      }
    }
    size = Math.max(1, Math.floor(left / Math.max(1, found.get(numbers.at(-1)!)?.length ?? 0)))
  }
  await insertGenerations(trx, rows)
  await advanceEvents(trx, scope, { done, partly })
}

/** Whether the webhook notified of transfers when the event was stored. */
function wants({ event_number, events, earlier_events }: EventWebhook): boolean {
  const earlier = earlier_events?.find(({ until }) => event_number < until)
  const then = earlier ? earlier.events : events
  return then === null || then.includes('WEBHOOK_EVENT_TRANSFER')
}

const toRow = (event: NotificationEvent, { webhook_id, confirmation }: EventWebhook): Waiting => ({
  key: event.event_key,
  organization_id: event.organization_id,
  network_id: event.network_id,
  webhook_id,
  notification_type: event.notification_type,
  data: event.data,
  transaction_hash: event.transaction_hash,
  block_number: event.block_number,
  due_block: dueBlockOf(event.block_number, confirmation),
  create_time: event.create_time,
})
