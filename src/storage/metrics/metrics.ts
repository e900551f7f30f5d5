// Counts of the installation by minute. Rows are of one process and minute, so that no two processes write one row.

import { sql } from 'kysely'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { metricTables } from './tables.ts'

/** The counts of one process in one minute. */
export type MinuteRow = Omit<RowOf<typeof metricTables.metric_minute>, 'latency_counts'> & {
  latency_counts: number[]
}

/** The counts of all processes in one minute. */
export type Minute = Omit<MinuteRow, 'holder'>

/** A head in one minute. */
export type HeadRow = RowOf<typeof metricTables.head_minute>

// Once, for the insert, the sum and the list: a new count is one more name and a column.
const counts = [
  'request_count',
  'error_count',
  'refused_count',
  'gateway_count',
  'gateway_error_count',
  'cache_hit_count',
  'cache_miss_count',
  'delivery_count',
  'delivery_failed_count',
] as const

/** Stores the counts of a minute; those of a process that stopped within it are added to. */
export const addMinute = async (db: Db, row: MinuteRow): Promise<void> => {
  const added = sql.join(
    counts.map((name) => sql`${sql.ref(name)} = m.${sql.ref(name)} + excluded.${sql.ref(name)}`),
  )
  await sql`
    insert into metric_minute as m (minute, holder, ${sql.join(counts.map((name) => sql.ref(name)))},
      latency_counts)
    values (${row.minute}, ${row.holder}, ${sql.join(counts.map((name) => sql`${row[name]}`))},
      ${row.latency_counts}::int8[])
    on conflict (minute, holder) do update set ${added}, latency_counts = array(
      select a + b from unnest(m.latency_counts, excluded.latency_counts) u (a, b))`.execute(db)
}

/** Stores the last tracked blocks of a minute. Only the process that tracks a network knows its lag. */
export const setHeads = async (
  db: Db,
  minute: Date,
  lags: readonly { network_id: number; lag_blocks: number | null }[],
): Promise<void> => {
  await sql`
    insert into head_minute as h (minute, network_id, block_number, lag_blocks)
    select ${minute}, c.network_id, c.block_number, l.lag_blocks
    from tracker_cursor c
    join unnest(${lags.map(({ network_id }) => network_id)}::int2[],
      ${lags.map(({ lag_blocks }) => lag_blocks)}::int8[]) l (network_id, lag_blocks)
      on l.network_id = c.network_id
    where c.name = 'tracker'
    on conflict (minute, network_id) do update set block_number = excluded.block_number,
      lag_blocks = coalesce(excluded.lag_blocks, h.lag_blocks)`.execute(db)
}

/** The minutes of a range, all processes together. */
export const listMinutes = async (db: Db, from: Date, to: Date): Promise<Minute[]> => {
  const sums = sql.join(counts.map((name) => sql`sum(${sql.ref(name)})::int8 as ${sql.ref(name)}`))
  const { rows } = await sql<Minute>`
    select m.minute, ${sums}, (
      select array_agg(total order by place) from (
        select place, sum(value)::int8 as total
        from metric_minute o, unnest(o.latency_counts) with ordinality u (value, place)
        where o.minute = m.minute group by place) t) as latency_counts
    from metric_minute m where minute >= ${from} and minute <= ${to}
    group by m.minute order by m.minute`.execute(db)
  return rows.map((row) => ({ ...row, latency_counts: row.latency_counts.map(Number) }))
}

/** The heads of a range. */
export const listHeadMinutes = async (
  db: Db,
  from: Date,
  to: Date,
): Promise<(HeadRow & { chain: string; network: string })[]> => {
  const { rows } = await sql<HeadRow & { chain: string; network: string }>`
    select h.*, n.chain, n.network from head_minute h
    join network n on n.network_id = h.network_id
    where h.minute >= ${from} and h.minute <= ${to}
    order by h.minute, n.chain, n.network`.execute(db)
  return rows
}

/** Deletes minutes before a time. */
export const deleteOldMinutes = async (db: Db, before: Date): Promise<void> => {
  await sql`delete from metric_minute where minute < ${before}`.execute(db)
  await sql`delete from head_minute where minute < ${before}`.execute(db)
}
