import { sql } from 'kysely'
import type { Db } from './database.ts'

/** What the statistics of the server say of a table. */
export type TableEstimate = { rows: number; bytes: number }

/** The estimated rows and the size of every table; nothing is counted. */
export const estimateTables = async (db: Db): Promise<Map<string, TableEstimate>> => {
  const { rows } = await sql<{ name: string } & TableEstimate>`
    select relname as name, greatest(reltuples, 0)::int8 as rows, pg_table_size(oid)::int8 as bytes
    from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace`.execute(
    db,
  )
  return new Map(rows.map(({ name, ...estimate }) => [name, estimate]))
}
