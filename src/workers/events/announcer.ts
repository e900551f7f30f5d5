// Sends operational events by webhook. Writers of events store a row and nothing else; one leased loop turns the beginning
// and the end of each into notifications of the webhooks that want them, page by page, in the outbox of all
// notifications: same sequence, signature and retries. An incident is announced once, however often it is looked at.

import {
  type OperationalEventName,
  operationalNotificationType,
} from '../../contract/records/states.ts'
import { type Clock, toTimestamp } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { periodStarts } from '../../storage/access/rate-usage.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  type LimitDefaults,
  recordNearLimits,
  recordStuckTransactions,
} from '../../storage/tracking/incidents.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import type { EventKind } from '../../storage/tracking/tables.ts'
import { stuckAfterMs } from '../../storage/transactions/record.ts'
import {
  listPendingAnnouncements,
  noteAnnounced,
  type PendingAnnouncement,
  pageAnnounced,
} from '../../storage/webhooks/announcements.ts'
import { queueNotifications } from '../../storage/webhooks/notifications.ts'
import { type HeldLease, startLeased } from '../lease.ts'

/** The names of events on the wire; the same as in the log. */
export const eventNames: Readonly<
  Record<EventKind, { opened: OperationalEventName; resolved: OperationalEventName }>
> = {
  tracker_failing: { opened: 'tracker_failing', resolved: 'tracker_recovered' },
  tracker_stalled: { opened: 'tracker_stalled', resolved: 'tracker_recovered' },
  gap: { opened: 'gap_opened', resolved: 'gap_closed' },
  node_lost: { opened: 'node_lost', resolved: 'node_recovered' },
  webhook_disabled: { opened: 'webhook_disabled', resolved: 'webhook_enabled' },
  transaction_stuck: { opened: 'transaction_stuck', resolved: 'transaction_moved' },
  limit_near: { opened: 'limit_near', resolved: 'limit_near' },
  balance_repaired: { opened: 'balance_repaired', resolved: 'balance_repaired' },
  sink_event_refused: { opened: 'sink_event_refused', resolved: 'sink_event_refused' },
}

/** What the announcer needs. */
export type AnnouncerOptions = {
  db: Db
  clock: Clock
  log: Log
  holder: string
  limits(): LimitDefaults
  turnMs?: number
  lookMs?: number
}

// Bounds of one turn: each page is one transaction, which locks its webhooks.
const eventsAtOnce = 50
const webhooksAtOnce = 200
// A limit is reported once it is used to 80 %, early enough for an operator to raise it.
const nearShare = 0.8

/** Starts the loop. */
export function startAnnouncer(options: AnnouncerOptions): { stop(): Promise<void> } {
  const { db, clock, log, holder, limits, turnMs = 1_000, lookMs = 30_000 } = options
  return startLeased({
    ...{ db, clock, log, holder, name: 'announcer' },
    run: async (lease, signal, works) => {
      let lookAt = 0
      while (!signal.aborted) {
        // Incidents that no writer notices are looked for less often than stored events are
        // announced: the look-up costs more.
        if (clock.now() >= lookAt) {
          lookAt = clock.now() + lookMs
          await lookForIncidents(db, { now: new Date(clock.now()), defaults: limits() })
        }
        const pending = await listPendingAnnouncements(db, eventsAtOnce)
        for (const event of pending) await announcePage(db, lease, event, new Date(clock.now()))
        works()
        // More than a page of something is left to do.
        if (pending.length === 0) await clock.sleep(turnMs, signal).catch(() => {})
      }
    },
  })
}

/** Records what no writer notices by itself: transactions that do not move, and limits that are nearly used. */
export async function lookForIncidents(
  db: Db,
  { now, defaults }: { now: Date; defaults: LimitDefaults },
): Promise<void> {
  const sentBefore = new Date(now.getTime() - stuckAfterMs)
  await recordStuckTransactions(db, { sentBefore, now })
  await recordNearLimits(db, { defaults, starts: periodStarts(now), share: nearShare, now })
}

/** Queues the notifications of the next webhooks; says whether that were the last ones. */
export async function announcePage(
  db: Db,
  lease: HeldLease,
  event: PendingAnnouncement,
  now: Date,
): Promise<boolean> {
  // The notifications and the progress of the event commit together, so a crash neither repeats nor
  // skips a webhook.
  return await db.transaction().execute(async (trx) => {
    await assertLease(trx, lease.name, lease.epoch)
    const webhooks = await pageAnnounced(trx, event, webhooksAtOnce)
    const data = { operational_event: presentEvent(event) }
    const notification_type = operationalNotificationType
    await queueNotifications(
      trx,
      webhooks.map((webhook) => ({ ...webhook, notification_type, data })),
      now,
    )
    const is_done = webhooks.length < webhooksAtOnce
    const after_webhook_id = webhooks.at(-1)?.webhook_id ?? event.after_webhook_id
    await noteAnnounced(trx, event, { after_webhook_id, is_done })
    return is_done
  })
}

/** An event as a notification shows it. */
function presentEvent(event: PendingAnnouncement) {
  const { event_id, kind, chain, network, organization_id, subject, detail, event_state } = event
  const isOpened = event_state === 'OPENED'
  return {
    ...{ event_id, event: eventNames[kind][isOpened ? 'opened' : 'resolved'] },
    ...{ chain, network, organization_id, subject, detail },
    create_time: toTimestamp(event.create_time),
    // As it was when the event began: its end is another notification.
    resolve_time: isOpened || !event.resolve_time ? null : toTimestamp(event.resolve_time),
  }
}
