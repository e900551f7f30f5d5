import { nullable, type RowOf, text, timestamptz } from '../pg/columns.ts'

/** The operational events of 0001-installation.sql. */
export const eventTables = {
  operational_event: {
    kind: text,
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
