import { nullable, oneOf, type RowOf, text, timestamptz } from '../pg/columns.ts'

/**
 * What an operational event is about. A new kind needs a name here and in the check of the column: `/status`,
 * `portolan chains` and `doctor` show every kind.
 */
export type EventKind = 'tracker_failing' | 'tracker_stalled' | 'gap'

/** The operational events of 0001-installation.sql. */
export const eventTables = {
  operational_event: {
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
