import { sql } from 'kysely'
import type { QuotaName } from '../../contract/quotas.ts'
import type { Db } from '../pg/database.ts'
import { readOpenUse } from '../transactions/open-use.ts'

/** What is counted with every change. */
export type CountedQuota = Exclude<QuotaName, 'QUOTA_OPEN_TRANSACTIONS'>

/** How much is used of a quota, and its limit where the organization has one of its own. */
export type QuotaUse = { used: number; quota_limit: number | null }

/**
 * Counts what an organization gains, or loses where the number is negative. Holds the counter until
 * the transaction ends, so that two processes never count past each other. To be called last, and for
 * several quotas in one order: addresses, wallets, webhooks, headers.
 */
export const addUse = async (
  trx: Db,
  organization_id: string,
  { quota_name, gained }: { quota_name: CountedQuota; gained: number },
): Promise<QuotaUse> => {
  const { rows } = await sql<QuotaUse>`
    insert into quota_use (organization_id, quota_name, used)
    values (${organization_id}, ${quota_name}, ${gained})
    on conflict (organization_id, quota_name) do update set used = quota_use.used + ${gained}
    returning used, (
      select quota_limit from quota q where q.organization_id = quota_use.organization_id
        and q.quota_name = quota_use.quota_name) as quota_limit`.execute(trx)
  return rows[0]!
}

/** Counts what was removed, in the order of the locks. */
export const subtractUse = async (
  trx: Db,
  organization_id: string,
  removed: readonly (readonly [CountedQuota, number])[],
): Promise<void> => {
  // In the given order, because each counter is a lock.
  for (const [quota_name, count] of removed)
    if (count > 0) await addUse(trx, organization_id, { quota_name, gained: -count })
}

/** What organizations have, counted. */
const counted = (organization_ids: readonly string[]) => {
  const mine = sql`organization_id = any(${organization_ids as string[]}::uuid[])`
  // One branch per quota, the same conditions as in the operations that count.
  return sql`(
    select organization_id, 'QUOTA_WALLETS' as quota_name, count(*) as used from wallet
    where ${mine} and remove_time is null group by organization_id
    union all
    select organization_id, 'QUOTA_ADDRESSES', sum(address_count) from wallet
    where ${mine} group by organization_id
    union all
    select organization_id, 'QUOTA_WEBHOOKS', count(*) from webhook
    where ${mine} and sink is distinct from 'stream' group by organization_id
    union all
    select organization_id, 'QUOTA_WEBHOOK_HEADERS', count(*) from webhook_header
    where ${mine} group by organization_id
    union all
    select organization_id, 'QUOTA_CONTRACTS', count(*) from contract
    where ${mine} group by organization_id)`
}

// Counting reads every row of an organization: small pages leave room for others.
const organizationsAtOnce = 200

/**
 * Counts anew what organizations have and corrects the counters that differ, for example after processes
 * of an older version, which counted nothing, ran beside this one. Gives the number of corrections.
 */
export const recountUses = async (db: Db): Promise<number> => {
  let corrected = 0
  let after: string | undefined
  // Page by page over organizations. The comparison is without locks, and only what differs is
  // counted again under a lock.
  do {
    const { rows } = await sql<{ organization_id: string }>`
      select organization_id from organization
      where disable_time is null ${after ? sql`and organization_id > ${after}` : sql``}
      order by organization_id limit ${organizationsAtOnce}`.execute(db)
    const ids = rows.map(({ organization_id }) => organization_id)
    for (const wrong of await listMiscounted(db, ids)) {
      await recount(db, wrong)
      corrected++
    }
    after = ids.length === organizationsAtOnce ? ids.at(-1) : undefined
  } while (after)
  return corrected
}

type Counter = { organization_id: string; quota_name: string }

const listMiscounted = async (db: Db, organization_ids: readonly string[]): Promise<Counter[]> => {
  const { rows } = await sql<Counter>`
    select coalesce(c.organization_id, u.organization_id) as organization_id,
      coalesce(c.quota_name, u.quota_name) as quota_name
    from ${counted(organization_ids)} c
    full join (
      select * from quota_use
      where organization_id = any(${organization_ids as string[]}::uuid[])) u
      on u.organization_id = c.organization_id and u.quota_name = c.quota_name
    where coalesce(c.used, 0) <> coalesce(u.used, 0)
    order by 1, 2`.execute(db)
  return rows
}

/**
 * Holds the counter while it counts. A transaction that has changed it is waited for, and one that has
 * not yet changed it does so afterwards, so that the sum is exact.
 */
const recount = async (db: Db, { organization_id, quota_name }: Counter): Promise<void> =>
  await db.transaction().execute(async (trx) => {
    await sql`
      insert into quota_use (organization_id, quota_name, used)
      values (${organization_id}, ${quota_name}, 0)
      on conflict (organization_id, quota_name) do update set used = quota_use.used`.execute(trx)
    // A statement of its own: it sees what was committed while the first one waited.
    await sql`
      update quota_use u set used = coalesce((
        select c.used from ${counted([organization_id])} c where c.quota_name = u.quota_name), 0)
      where organization_id = ${organization_id} and quota_name = ${quota_name}`.execute(trx)
  })

/** What an organization uses of each quota, with the limits that are its own. */
export const listQuotaUses = async (
  db: Db,
  organization_id: string,
): Promise<Map<string, QuotaUse>> => {
  const open = await readOpenUse(db, organization_id)
  const { rows } = await sql<QuotaUse & { quota_name: string }>`
    select coalesce(u.quota_name, q.quota_name) as quota_name, coalesce(u.used, 0) as used,
      q.quota_limit
    from (
      select quota_name, used from quota_use where organization_id = ${organization_id}
      union all
      select 'QUOTA_OPEN_TRANSACTIONS', ${open}::int8) u
    full join (select * from quota where organization_id = ${organization_id}) q
      on q.quota_name = u.quota_name`.execute(db)
  return new Map(
    rows.map(({ quota_name, used, quota_limit }) => [quota_name, { used, quota_limit }]),
  )
}

/** Gives an organization a limit of its own, or takes it away. */
export const setQuota = async (
  db: Db,
  { organization_id, quota_name }: { organization_id: string; quota_name: QuotaName },
  { quota_limit, update_time }: { quota_limit: number | undefined; update_time: Date },
): Promise<void> => {
  if (quota_limit === undefined)
    await sql`
      delete from quota where organization_id = ${organization_id}
        and quota_name = ${quota_name}`.execute(db)
  else
    await sql`
      insert into quota (organization_id, quota_name, quota_limit, update_time)
      values (${organization_id}, ${quota_name}, ${quota_limit}, ${update_time})
      on conflict (organization_id, quota_name) do update
        set quota_limit = excluded.quota_limit, update_time = excluded.update_time`.execute(db)
}
