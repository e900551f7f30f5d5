// Operational events on their way to webhooks. An event is announced page by page. Its position is stored in the
// transaction that queues the notifications, so a process that ends in between neither skips nor repeats a webhook.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import type { OperationalEventRow } from '../tracking/tables.ts'

/** The beginning or the end of an event that is not announced to all webhooks yet. */
export type PendingAnnouncement = OperationalEventRow & {
  event_state: 'OPENED' | 'RESOLVED'
  after_webhook_id: string | null
}

/** Kinds whose end is announced too; the others are over when they begin. */
const lasting = [
  ...['tracker_failing', 'tracker_stalled', 'gap', 'node_lost'],
  ...['webhook_disabled', 'transaction_stuck'],
]

/**
 * What is to be announced: the oldest of the installation and of each organization first, then the second ones. One
 * organization may have thousands.
 */
export const listPendingAnnouncements = async (
  db: Db,
  limit: number,
): Promise<PendingAnnouncement[]> => {
  // Both ends of each event are one row here, so an event that is over before its beginning was
  // announced still gets both, in order.
  const { rows } = await sql<PendingAnnouncement>`
    select e.*, s.event_state, a.after_webhook_id,
      row_number() over (partition by e.organization_id
        order by e.create_time, e.event_id, s.event_state) as turn
    from operational_event e
    cross join (values ('OPENED'), ('RESOLVED')) s (event_state)
    left join operational_announcement a
      on a.event_id = e.event_id and a.event_state = s.event_state
    where (s.event_state = 'OPENED' or (e.resolve_time is not null and e.kind = any(${lasting}::text[])))
      and not coalesce(a.is_done, false)
    order by turn, e.organization_id is not null, e.create_time, e.event_id, s.event_state limit ${limit}`.execute(
    db,
  )
  return rows
}

/** A webhook that gets an operational event. */
export type AnnouncedWebhook = { webhook_id: string; organization_id: string; network_id: number }

// As the index is declared, or it would not be used.
const isSubscribed = sql`w.events && array['WEBHOOK_EVENT_OPERATIONAL', 'WEBHOOK_EVENT_INSTALLATION']`

/**
 * The next webhooks that get an event: those of the installation whatever their network; those of an organization on the
 * network of the event. An event of one organization that has no such webhook there, or of a chain without wallets, goes
 * to the first network on which it has one. Nodes belong to the operator.
 */
export const pageAnnounced = async (
  db: Db,
  event: PendingAnnouncement,
  limit: number,
): Promise<AnnouncedWebhook[]> => {
  const { kind, chain, network, organization_id, subject, after_webhook_id } = event
  const beyond = after_webhook_id === null ? sql`` : sql`and w.webhook_id > ${after_webhook_id}`
  const mine = sql`o.organization_id = ${organization_id} and 'WEBHOOK_EVENT_OPERATIONAL' = any(o.events)`
  const at = sql`select network_id from network n where n.chain = ${chain} and n.network = ${network}`
  const forOrganizations =
    organization_id === null
      ? sql`${kind}::text <> 'node_lost' and w.network_id = (${at})`
      : sql`w.organization_id = ${organization_id} and w.network_id = coalesce(
          (${at} and exists (select from webhook o where o.network_id = n.network_id and ${mine})),
          (select min(o.network_id) from webhook o where ${mine}))`
  // Not the webhook that the event is about: it was disabled, and could not be notified of that.
  const { rows } = await sql<AnnouncedWebhook>`
    select w.webhook_id, w.organization_id, w.network_id from webhook w
    where ${isSubscribed} and w.sink is distinct from 'stream' and w.webhook_id::text <> ${subject} ${beyond}
      and ('WEBHOOK_EVENT_INSTALLATION' = any(w.events)
        or ('WEBHOOK_EVENT_OPERATIONAL' = any(w.events) and ${forOrganizations}))
    order by w.webhook_id limit ${limit}`.execute(db)
  return rows
}

/** Notes how far an event is announced. */
export const noteAnnounced = async (
  trx: Db,
  { event_id, event_state }: Pick<PendingAnnouncement, 'event_id' | 'event_state'>,
  { after_webhook_id, is_done }: { after_webhook_id: string | null; is_done: boolean },
): Promise<void> => {
  await sql`
    insert into operational_announcement (event_id, event_state, after_webhook_id, is_done)
    values (${event_id}, ${event_state}, ${after_webhook_id}, ${is_done})
    on conflict (event_id, event_state) do update set
      after_webhook_id = excluded.after_webhook_id, is_done = excluded.is_done`.execute(trx)
}
