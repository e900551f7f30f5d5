import { sql } from 'kysely'
import { bulkRows } from '../pg/bulk.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { accessTables } from './tables.ts'

/** How often a credential called a method of a chain on one day: a difference, or a total. */
export type MethodUsage = Omit<RowOf<typeof accessTables.method_usage>, 'latency_counts'> & {
  /** Answered calls by latency, where it was measured. Not listed. */
  latency_counts?: readonly number[] | undefined
}

/** The counts of a method over some days, of all keys or of one. */
export type MethodTotal = Pick<
  MethodUsage,
  'chain' | 'network' | 'method' | 'call_count' | 'error_count' | 'refused_count'
> & { credential_id: string | null; latency_counts: number[] }

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

/** Adds the counts of one row to those of another of the same key, method and day. */
export function addCounts(to: MethodUsage, from: MethodUsage): void {
  to.call_count += from.call_count
  to.error_count += from.error_count
  to.refused_count += from.refused_count
  const { latency_counts: counts } = from
  if (counts)
    to.latency_counts = to.latency_counts
      ? to.latency_counts.map((count, at) => count + (counts[at] ?? 0))
      : counts
}

// A newline is in none of the parts, so that two different keys never give one text.
/** What identifies a counter. */
export const usageKey = (row: MethodUsage): string =>
  `${row.day}\n${row.credential_id}\n${row.chain}\n${row.network}\n${row.method}`

/** Adds to counters in one statement. */
export const addMethodUsage = async (db: Db, deltas: readonly MethodUsage[]): Promise<void> => {
  if (deltas.length === 0) return
  // One statement may change a row only once (`on conflict do update`), so equal keys are added up first.
  const rows = new Map<string, MethodUsage>()
  for (const delta of deltas) {
    const key = usageKey(delta)
    const there = rows.get(key)
    if (there) addCounts(there, delta)
    else rows.set(key, { ...delta })
  }
  // In one order everywhere: replicas that flush at once would deadlock on each other's rows.
  await sql`
    insert into method_usage (organization_id, day, credential_id, chain, network, method,
      call_count, error_count, refused_count, latency_counts)
    select organization_id, day, credential_id, chain, network, method,
      call_count, error_count, refused_count, latency_counts
    from json_populate_recordset(null::method_usage, ${bulkRows([...rows.values()])}::text::json)
    order by 1, 2, 3, 4, 5, 6
    on conflict (organization_id, day, credential_id, chain, network, method) do update set
      call_count = method_usage.call_count + excluded.call_count,
      error_count = method_usage.error_count + excluded.error_count,
      refused_count = method_usage.refused_count + excluded.refused_count,
      latency_counts = nullif(array(
        select coalesce(a, 0) + coalesce(b, 0)
        from unnest(method_usage.latency_counts, excluded.latency_counts) with ordinality u (a, b, place)
        order by place), '{}')`.execute(db)
}

/** The methods of the gateway over some days, the most called first; for each key where that is wanted. */
export const listMethodTotals = async (
  db: Db,
  organization_id: string,
  filter: {
    from_day: string
    to_day: string
    chain?: string | undefined
    isPerKey: boolean
    limit: number
  },
): Promise<MethodTotal[]> => {
  const { from_day, to_day, chain = null, isPerKey, limit } = filter
  type Row = Omit<MethodTotal, 'latency_counts'> & { latency_counts: string[] | null }
  const key = isPerKey ? sql`credential_id` : sql`null::uuid`
  // Totals first and with the limit, buckets after it: unnesting all rows of a month would be many times the work.
  // Operations have no network, and their latency is not counted by key.
  const { rows } = await sql<Row>`
    with picked as (
      select ${key} as credential_id, chain, network, method, call_count, error_count, refused_count,
        latency_counts
      from method_usage
      where organization_id = ${organization_id} and day between ${from_day} and ${to_day}
        and network <> '' and (${chain}::text is null or chain = ${chain})),
    total as (
      select credential_id, chain, network, method, sum(call_count)::int8 as call_count,
        sum(error_count)::int8 as error_count, sum(refused_count)::int8 as refused_count
      from picked group by 1, 2, 3, 4 order by call_count desc, 2, 3, 4, 1 limit ${limit}),
    place as (
      select credential_id, chain, network, method, at, sum(value)::int8 as value
      from picked, unnest(latency_counts) with ordinality u (value, at)
      group by 1, 2, 3, 4, 5)
    select t.*, (
      select array_agg(p.value order by p.at) from place p
      where p.credential_id is not distinct from t.credential_id
        and p.chain = t.chain and p.network = t.network and p.method = t.method) as latency_counts
    from total t order by call_count desc, chain, network, method, credential_id`.execute(db)
  return rows.map((row) => ({ ...row, latency_counts: (row.latency_counts ?? []).map(Number) }))
}

/** The counters of an organization, by day, credential, chain, network and method. */
export const listMethodUsage = async (
  db: Db,
  organization_id: string,
  { from_day, to_day, limit, ...equal }: MethodUsageFilter,
): Promise<MethodUsage[]> => {
  let query = db
    .selectFrom('method_usage')
    .select(['organization_id', 'day', 'credential_id', 'chain', 'network', 'method'])
    .select(['call_count', 'error_count', 'refused_count'])
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
