import { bool, nullable, oneOf, type RowOf, text, timestamptz, uuid } from '../pg/columns.ts'

/** The kinds of events that mean that a network is not tracked: `/status`, `portolan chains` and `doctor` show them. */
export const trackingKinds = ['tracker_failing', 'tracker_stalled', 'gap'] as const

/** What an operational event is about. A new kind needs a name here and in the check of the column. */
export type EventKind =
  | (typeof trackingKinds)[number]
  | 'node_lost'
  | 'webhook_disabled'
  | 'limit_near'
  | 'transaction_stuck'
  | 'balance_repaired'
  | 'sink_event_refused'

/** The operational events of 0001-installation.sql, and how far they are announced (0015-operational-events.sql). */
export const eventTables = {
  operational_announcement: {
    event_id: uuid,
    event_state: oneOf<'OPENED' | 'RESOLVED'>(),
    after_webhook_id: nullable(uuid),
    is_done: bool,
  },
  operational_event: {
    event_id: uuid,
    organization_id: nullable(uuid),
    kind: oneOf<EventKind>(),
    chain: text,
    network: text,
    subject: text,
    detail: text,
    create_time: timestamptz,
    update_time: timestamptz,
    resolve_time: nullable(timestamptz),
  },
}

/** A stored operational event. */
export type OperationalEventRow = RowOf<typeof eventTables.operational_event>

/** The same as lists show it. */
export type ListedEventRow = Omit<OperationalEventRow, 'event_id' | 'organization_id'>
