// Counts what work costs the database in rows, because times depend on the machine.

import { sql } from 'kysely'
import type { Db } from '../../src/storage/pg/database.ts'

/** How many rows of a table the work reads, by any index or none. The database needs a single connection. */
export async function rowsRead(
  db: Db,
  table: string,
  work: () => Promise<unknown>,
): Promise<number> {
  // A session flushes only its own counters when it is asked to.
  const read = async () => {
    await sql`select pg_stat_force_next_flush()`.execute(db)
    const { rows } = await sql<{ count: number }>`
      select (coalesce(t.seq_tup_read, 0) + coalesce(sum(i.idx_tup_read), 0))::int8 as count
      from pg_stat_user_tables t join pg_stat_user_indexes i on i.relid = t.relid
      where t.relname = ${table} group by t.seq_tup_read`.execute(db)
    return rows[0]!.count
  }
  const before = await read()
  await work()
  return (await read()) - before
}
