// The limits that administrators have set. A missing record is not an error: the record `*` of the organization applies
// then, and without that the configuration.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import type { RateLimitRow } from './tables.ts'

/** The record of exactly this chain; `*` is the organization's default. */
export const findRateLimit = async (
  db: Db,
  organization_id: string,
  chain: string,
): Promise<RateLimitRow | undefined> =>
  await db
    .selectFrom('rate_limit')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('chain', '=', chain)
    .executeTakeFirst()

/** All records of an organization, or those of one chain. */
export const listRateLimits = async (
  db: Db,
  organization_id: string,
  chain?: string,
): Promise<RateLimitRow[]> => {
  const all = db
    .selectFrom('rate_limit')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .orderBy('chain')
  return await (chain === undefined ? all : all.where('chain', '=', chain)).execute()
}

/** Creates or replaces a record; undefined when the organization does not exist. */
export const upsertRateLimit = async (
  db: Db,
  { update_time, ...limit }: Omit<RateLimitRow, 'create_time'>,
): Promise<RateLimitRow | undefined> => {
  // As a select over the organization: none inserts no row instead of raising an error.
  const { rows } = await sql<RateLimitRow>`
    insert into rate_limit (organization_id, chain, per_second_limit, per_hour_limit, per_day_limit,
      per_month_limit, create_time, update_time)
    select organization_id, ${limit.chain}::text, ${limit.per_second_limit}::int8,
      ${limit.per_hour_limit}::int8, ${limit.per_day_limit}::int8, ${limit.per_month_limit}::int8,
      ${update_time}::timestamptz, ${update_time}::timestamptz
    from organization where organization_id = ${limit.organization_id}
    on conflict (organization_id, chain) do update set
      per_second_limit = excluded.per_second_limit, per_hour_limit = excluded.per_hour_limit,
      per_day_limit = excluded.per_day_limit, per_month_limit = excluded.per_month_limit,
      update_time = excluded.update_time
    returning *`.execute(db)
  return rows[0]
}

/** Deletes all records of an organization, or that of one chain, and says how many there were. */
export const deleteRateLimits = async (
  db: Db,
  organization_id: string,
  chain?: string,
): Promise<number> => {
  const all = db.deleteFrom('rate_limit').where('organization_id', '=', organization_id)
  const { numDeletedRows } = await (chain === undefined
    ? all
    : all.where('chain', '=', chain)
  ).executeTakeFirst()
  return Number(numDeletedRows)
}
