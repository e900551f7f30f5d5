// How many transactions of an organization are open, for its quota. A new transaction costs one short statement, however many are
// open: it reserves a place in an upper bound. The bound is replaced by an exact count when it reaches the quota.
//
// A reservation is committed on its own, before the transaction that uses it. That transaction holds the lock of the organization
// shared and compares the generation. A count holds the lock alone, so that it sees all that used their reservation, and makes the
// others void. So open transactions and reservations that can still be used are never more than the bound.

import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** The bound of an organization, and its quota where it has one of its own. */
export type OpenUse = { used: number; quota_limit: number | null }

/** A lock of an organization, to be taken in the first statement of a transaction, after that of the address. */
export type OpenLock = RawBuilder<unknown>

// Two-part advisory locks: the class distinguishes what the hash of the organization is locked for.
const lockClass = 5_713_305

/** Several transactions that create hold it at once. In a statement before the one that reads the generation. */
export const shareOpen = (organization_id: string): OpenLock =>
  sql`pg_advisory_xact_lock_shared(${sql.lit(lockClass)}, hashtext(${organization_id}))`

/** Waits for all that hold it, and keeps others waiting. In a statement before the one that counts. */
export const holdOpen = (organization_id: string): OpenLock =>
  sql`pg_advisory_xact_lock(${sql.lit(lockClass)}, hashtext(${organization_id}))`

const open = sql`transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED',
  'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED')`

const ownLimit = (organization_id: string) => sql`
  (select quota_limit from quota where organization_id = ${organization_id}
    and quota_name = 'QUOTA_OPEN_TRANSACTIONS')`

// A process of an older version reserves nothing. What it created is in the bound this long after it at the latest.
const lastsFor = sql`interval '10 minutes'`

/**
 * Reserves a place for one transaction, in a transaction of its own, and answers the generation. Undefined where an exact count is
 * needed: the bound has reached the limit, is old, or is missing.
 */
export const reserveOpen = async (
  db: Db,
  organization_id: string,
  usual_limit: number,
): Promise<number | undefined> => {
  // It does not wait for the disk. In the log it is before the transaction that uses it, which does.
  const { rows } = await sql<{ generation: number }>`
    update open_transaction_use set reserved = reserved + 1
    where organization_id = ${organization_id}
      and reserved < coalesce(${ownLimit(organization_id)}, ${usual_limit}::int8)
      and count_time > clock_timestamp() - ${lastsFor}
    returning generation, set_config('synchronous_commit', 'off', true)`.execute(db)
  return rows[0]?.generation
}

/** The generation of the bound; undefined where there is none. */
export const findGeneration = async (
  trx: Db,
  organization_id: string,
): Promise<number | undefined> => {
  const { rows } = await sql<{ generation: number }>`
    select generation from open_transaction_use
    where organization_id = ${organization_id}`.execute(trx)
  return rows[0]?.generation
}

// Of all open transactions at most this many are counted in a millisecond, on average: an organization with 100,000 is counted
// every two seconds. One with few is counted whenever that is needed.
const countedPerMs = sql.lit(50)

/** The bound, and whether the last count was so recent that it must do. */
export const findOpenUse = async (
  db: Db,
  organization_id: string,
): Promise<(OpenUse & { is_recent: boolean }) | undefined> => {
  const { rows } = await sql<OpenUse & { is_recent: boolean }>`
    select reserved as used, ${ownLimit(organization_id)} as quota_limit,
      clock_timestamp() < count_time + reserved / ${countedPerMs} * interval '1 millisecond' as is_recent
    from open_transaction_use where organization_id = ${organization_id}`.execute(db)
  return rows[0]
}

/** Counts under the lock that the caller holds, with `more` that it is about to create. */
const replaceBound = async (trx: Db, organization_id: string, more: number): Promise<OpenUse> => {
  const { rows } = await sql<OpenUse>`
    insert into open_transaction_use as u (organization_id, reserved, generation, count_time)
    select ${organization_id}, count(*) + ${more}::int8, 1, clock_timestamp()
    from managed_transaction where organization_id = ${organization_id} and ${open}
    on conflict (organization_id) do update
      set reserved = excluded.reserved, generation = u.generation + 1, count_time = excluded.count_time
    returning reserved as used, ${ownLimit(organization_id)} as quota_limit`.execute(trx)
  return rows[0]!
}

/** Counts exactly, unless that was done a moment ago, and answers the bound. */
export const recountOpen = async (db: Db, organization_id: string): Promise<OpenUse> => {
  const known = await findOpenUse(db, organization_id)
  if (known?.is_recent) return known
  return await db.transaction().execute(async (trx) => {
    await sql`select ${holdOpen(organization_id)}`.execute(trx)
    // Others wanted the same count, and one of them has made it while this one waited.
    const again = await findOpenUse(trx, organization_id)
    return again?.is_recent ? again : await replaceBound(trx, organization_id, 0)
  })
}

/** Counts exactly, with one more that the caller is about to create. It holds the lock alone. */
export const countOpenAlone = async (trx: Db, organization_id: string): Promise<OpenUse> =>
  await replaceBound(trx, organization_id, 1)

const fewOpen = 1_000

/** How many are open: exact where they are few, otherwise as of the last count, which is made again if it is old. */
export const readOpenUse = async (db: Db, organization_id: string): Promise<number> => {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from (
      select from managed_transaction where organization_id = ${organization_id} and ${open}
      limit ${fewOpen}) few`.execute(db)
  const { count } = rows[0]!
  return count < fewOpen ? count : (await recountOpen(db, organization_id)).used
}
