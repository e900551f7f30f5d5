// Use of rate limits by calendar window. Processes add differences and read totals back, so that they agree within a second
// without asking each other. Windows of a second are not stored: they are gone before a row would be written.

import { sql } from 'kysely'
import { bulkRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import type { UsagePeriod } from './tables.ts'

/** How much one window of an organization and chain was used: a difference, or a total. */
export type RateUsage = {
  organization_id: string
  chain: string
  period: UsagePeriod
  period_start: Date
  used: number
}

const dayMs = 86_400_000

/** When the windows that hold this moment began: calendar hour, day and month in UTC. */
export const periodStarts = (now: Date): Record<UsagePeriod, Date> => {
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()]
  return {
    hour: new Date(Date.UTC(year, month, day, now.getUTCHours())),
    day: new Date(Date.UTC(year, month, day)),
    month: new Date(Date.UTC(year, month, 1)),
  }
}

/** Adds to counters in one statement and answers their new totals. */
export const addRateUsage = async (db: Db, deltas: readonly RateUsage[]): Promise<RateUsage[]> => {
  if (deltas.length === 0) return []
  // In one order everywhere: replicas that flush at once would deadlock on each other's rows.
  const { rows } = await sql<RateUsage>`
    insert into rate_usage (organization_id, chain, period, period_start, used)
    select organization_id, chain, period, period_start, sum(used)::int8
    from json_populate_recordset(null::rate_usage, ${bulkRows(deltas)}::text::json)
    group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (organization_id, chain, period, period_start)
      do update set used = rate_usage.used + excluded.used
    returning *`.execute(db)
  return rows
}

/** What an organization has used of a chain in the current hour, day and month. */
export const loadRateUsage = async (
  db: Db,
  organization_id: string,
  chain: string,
  now: Date,
): Promise<Record<UsagePeriod, number>> => {
  const starts = periodStarts(now)
  const rows = await db
    .selectFrom('rate_usage')
    .select(['period', 'used'])
    .where('organization_id', '=', organization_id)
    .where('chain', '=', chain)
    .where((eb) =>
      eb.or([
        eb.and({ period: 'hour', period_start: starts.hour }),
        eb.and({ period: 'day', period_start: starts.day }),
        eb.and({ period: 'month', period_start: starts.month }),
      ]),
    )
    .execute()
  const used = { hour: 0, day: 0, month: 0 }
  for (const row of rows) used[row.period] = row.used
  return used
}

/** Forgets windows that have passed, except those a reader may still ask for; says how many. */
export const deleteOldRateUsage = async (db: Db, now: Date): Promise<number> => {
  // Longer than the window itself: usage of the day and month before is still shown.
  const before = (days: number) => new Date(now.getTime() - days * dayMs)
  const { numDeletedRows } = await db
    .deleteFrom('rate_usage')
    .where((eb) =>
      eb.or([
        eb.and([eb('period', '=', 'hour'), eb('period_start', '<', before(2))]),
        eb.and([eb('period', '=', 'day'), eb('period_start', '<', before(62))]),
        eb.and([eb('period', '=', 'month'), eb('period_start', '<', before(400))]),
      ]),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
