import { sql } from 'kysely'
import { bulkRows } from '../pg/bulk.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { accessTables } from './tables.ts'

/** How often a credential called a method of a chain on one day: a difference, or a total. */
export type MethodUsage = RowOf<typeof accessTables.method_usage>

/** Which counters to list; days are `YYYY-MM-DD` in UTC, both included. */
export type MethodUsageFilter = {
  from_day: string
  to_day: string
  credential_id?: string | undefined
  chain?: string | undefined
  network?: string | undefined
  method?: string | undefined
  limit: number
}

/** Adds to counters in one statement. */
export const addMethodUsage = async (db: Db, deltas: readonly MethodUsage[]): Promise<void> => {
  if (deltas.length === 0) return
  // In one order everywhere: replicas that flush at once would deadlock on each other's rows.
  await sql`
    insert into method_usage (organization_id, day, credential_id, chain, network, method,
      call_count, error_count, refused_count)
    select organization_id, day, credential_id, chain, network, method,
      sum(call_count)::int8, sum(error_count)::int8, sum(refused_count)::int8
    from json_populate_recordset(null::method_usage, ${bulkRows(deltas)}::text::json)
    group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4, 5, 6
    on conflict (organization_id, day, credential_id, chain, network, method) do update set
      call_count = method_usage.call_count + excluded.call_count,
      error_count = method_usage.error_count + excluded.error_count,
      refused_count = method_usage.refused_count + excluded.refused_count`.execute(db)
}

/** The counters of an organization, by day, credential, chain, network and method. */
export const listMethodUsage = async (
  db: Db,
  organization_id: string,
  { from_day, to_day, limit, ...equal }: MethodUsageFilter,
): Promise<MethodUsage[]> => {
  let query = db
    .selectFrom('method_usage')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('day', '>=', from_day)
    .where('day', '<=', to_day)
    .orderBy('day')
    .orderBy('credential_id')
    .orderBy('chain')
    .orderBy('network')
    .orderBy('method')
    .limit(limit)
  for (const column of ['credential_id', 'chain', 'network', 'method'] as const) {
    const value = equal[column]
    if (value !== undefined) query = query.where(column, '=', value)
  }
  return await query.execute()
}
