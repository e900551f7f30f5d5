import { notificationTypes } from '../../contract/records/states.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  type EventWebhook,
  listEvents,
  type StateEvent,
} from '../../storage/webhooks/event-queues.ts'
import { type NewNotification, queueNotifications } from '../../storage/webhooks/notifications.ts'
import {
  advanceStateEvent,
  deleteStateEvent,
  listStateWebhooks,
} from '../../storage/webhooks/state-events.ts'

// So many state changes of an organization are looked at for one page.
const eventsAtOnce = 100

/**
 * Writes one page of the notifications of state changes that were stored without them. Each organization
 * has its part of the page. The cursor must be locked.
 */
export async function expandStates(
  trx: Db,
  {
    network_id,
    organizations,
    now,
  }: { network_id: number; organizations: readonly string[]; now: Date },
  limit: number,
): Promise<void> {
  const part = Math.max(1, Math.floor(limit / Math.max(1, organizations.length)))
  const notifications: NewNotification[] = []
  for (const organization_id of organizations) {
    let left = part
    for (const event of await listEvents(
      trx,
      'state_event',
      { organization_id, network_id },
      Math.min(part, eventsAtOnce),
    )) {
      if (left <= 0) break
      const webhooks = await listStateWebhooks(trx, event, left)
      for (const webhook of webhooks)
        if (wants(webhook, event)) notifications.push(toNotification(event, webhook))
      const last = webhooks.at(-1)
      if (last && webhooks.length === left) await advanceStateEvent(trx, event, last.webhook_id)
      else await deleteStateEvent(trx, event)
      // An event without webhooks counts as one, so that a page of such events ends too.
      left -= Math.max(1, webhooks.length)
    }
  }
  // At once: webhooks are locked in the order of their ids.
  await queueNotifications(trx, notifications, now)
}

/** Whether the webhook notified of states when the change was stored. */
function wants({ events, earlier_events }: EventWebhook, { create_time }: StateEvent): boolean {
  const earlier = earlier_events?.find(
    ({ until_time }) => until_time !== undefined && create_time < new Date(until_time),
  )
  const then = earlier ? earlier.events : events
  return then === null || then.includes('WEBHOOK_EVENT_TRANSACTION_STATE')
}

const toNotification = (
  { organization_id, network_id, transaction_hash, data }: StateEvent,
  { webhook_id }: EventWebhook,
): NewNotification => ({
  ...{ organization_id, network_id, webhook_id, transaction_hash },
  notification_type: notificationTypes.c,
  data: data as object,
})
