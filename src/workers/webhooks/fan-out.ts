import { dueBlockOf } from '../../domain/wallets/transfer-view.ts'
import type { Db } from '../../storage/pg/database.ts'
import { lockCursor } from '../../storage/tracking/blocks.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import {
  type EventWebhook,
  hasEvents,
  listEventOrganizations,
  listEvents,
  type TransfersEvent,
} from '../../storage/webhooks/event-queues.ts'
import {
  advanceEvents,
  type EventProgress,
  listEventWebhooks,
} from '../../storage/webhooks/notification-events.ts'
import type { DeliveryRow } from '../../storage/webhooks/notifications.ts'
import { insertGenerations, type Waiting } from '../tracker/notification-rows.ts'
import { notifyReorganized, retractPage } from '../tracker/retract.ts'
import type { TrackerTools } from '../tracker/tools.ts'
import { expandStates } from './state-fan-out.ts'

// Each page of notifications is shared by so many organizations at most.
const organizationsAtOnce = 10
// So many events of an organization are looked at for one page.
const eventsAtOnce = 100

// The lease of the tracker: expanding belongs to the process that stores blocks.
type Tools = Pick<TrackerTools, 'db' | 'clock' | 'network_id' | 'lease'>

/** How much a page has, and how much of it one organization. */
export type PageLimits = { notifications: number; perOrganization?: number }

/** Of how many organizations a page was, and whether there is more. */
type Expanded = { organizations: number; isMore: boolean }

/**
 * Expands a page of the events of transfers and reorganizations, and a page of state changes. Each
 * organization has its part of a page, so that one with thousands of webhooks delays no other.
 */
export async function expandPage(
  tools: Tools,
  { notifications, perOrganization = notifications }: PageLimits,
): Promise<Expanded> {
  // In two transactions: each locks its webhooks in one order, and a block waits for one of them at most.
  const events = await expandIn(tools, 'notification_event', async (trx, organizations, now) => {
    // An equal part for each organization, at least one, so that all of them advance in every page.
    const equal = Math.max(1, Math.floor(notifications / Math.max(1, organizations.length)))
    const part = {
      rows: Math.min(perOrganization, equal),
      organizations: organizations.length,
    }
    const removed: DeliveryRow[] = []
    for (const organization_id of organizations) {
      const scope = { organization_id, network_id: tools.network_id }
      removed.push(...(await expandSome(trx, scope, part)))
    }
    // At once: webhooks are locked in the order of their ids.
    await notifyReorganized(trx, removed, now)
  })
  const states = await expandIn(tools, 'state_event', async (trx, organizations, now) => {
    const limit = Math.min(notifications, perOrganization * organizations.length)
    await expandStates(trx, { network_id: tools.network_id, organizations, now }, limit)
  })
  return {
    organizations: Math.max(events.organizations, states.organizations),
    isMore: events.isMore || states.isMore,
  }
}

/** Expands events of the organizations that have waited longest in one transaction. */
async function expandIn(
  { db, clock, network_id, lease }: Tools,
  table: 'notification_event' | 'state_event',
  expand: (trx: Db, organizations: readonly string[], now: Date) => Promise<void>,
): Promise<Expanded> {
  // Without a lock: a block that stores events wakes this again.
  if (!(await hasEvents(db, table, network_id))) return { organizations: 0, isMore: false }
  return await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    // No block is stored or removed meanwhile.
    await lockCursor(trx, network_id)
    const organizations = await listEventOrganizations(trx, table, network_id, organizationsAtOnce)
    await expand(trx, organizations, new Date(clock.now()))
    const isMore = await hasEvents(trx, table, network_id)
    return { organizations: organizations.length, isMore }
  })
}

/** Expands events of one organization. Returns the notifications that are to be retracted. */
async function expandSome(
  trx: Db,
  scope: WalletScope,
  part: { rows: number; organizations: number },
): Promise<DeliveryRow[]> {
  const { rows: limit } = part
  const all = await listEvents(trx, 'notification_event', scope, Math.min(limit, eventsAtOnce))
  const [first] = all
  if (first?.event_kind === 'REORGANIZATION') {
    const { rows, isDone } = await retractPage(trx, scope, first, part)
    await advanceEvents(trx, scope, { done: isDone ? [first.event_number] : [] })
    return rows
  }
  // Events after a reorganization belong to the new branch. They wait until everything before is
  // retracted.
  const end = all.findIndex(({ event_kind }) => event_kind === 'REORGANIZATION')
  const events = (end < 0 ? all : all.slice(0, end)) as TransfersEvent[]
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
    // Sized by the last event: as many more as fill the page if they have as many webhooks.
    size = Math.max(1, Math.floor(left / Math.max(1, found.get(numbers.at(-1)!)?.length ?? 0)))
  }
  await insertGenerations(trx, rows)
  await advanceEvents(trx, scope, { done, partly })
  return []
}

/** Whether the webhook notified of transfers when the event was stored. */
function wants({
  event_number,
  events,
  earlier_events,
}: EventWebhook & { event_number: number }): boolean {
  const earlier = earlier_events?.find(({ until }) => event_number < until)
  const then = earlier ? earlier.events : events
  return then === null || then.includes('WEBHOOK_EVENT_TRANSFER')
}

const toRow = (event: TransfersEvent, { webhook_id, confirmation }: EventWebhook): Waiting => ({
  key: event.event_key,
  organization_id: event.organization_id,
  network_id: event.network_id,
  webhook_id,
  notification_type: event.notification_type,
  data: event.data as object,
  transaction_hash: event.transaction_hash,
  block_number: event.block_number,
  due_block: dueBlockOf(event.block_number, confirmation),
  create_time: event.create_time,
})
