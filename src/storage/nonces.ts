import { sql } from 'kysely'
import { bulkRows } from './bulk.ts'
import type { Db } from './database.ts'

/** A nonce that a correctly signed request carried. */
export type NonceUse = { credential_id: string; nonce: string; expire_time: Date }

/** What became of it: `gone` when the credential was deleted or its organization disabled meanwhile. */
export type NonceOutcome = 'spent' | 'reused' | 'gone'

const keyOf = (use: Pick<NonceUse, 'credential_id' | 'nonce'>): string =>
  `${use.credential_id} ${use.nonce}`

/**
 * Spends a batch of nonces in one statement; answers in the order given. Of equal ones exactly one
 * is `spent`, in this batch and over all replicas.
 */
export const spendNonces = async (db: Db, uses: readonly NonceUse[]): Promise<NonceOutcome[]> => {
  if (uses.length === 0) return []
  const distinct = new Map(uses.map((use) => [keyOf(use), use]))
  // In one order everywhere: two batches that wait for each other's rows would deadlock.
  const { rows } = await sql<{ credential_id: string; nonce: string; outcome: NonceOutcome }>`
    with input as (
      select * from json_to_recordset(${bulkRows([...distinct.values()])}::text::json)
        as i (credential_id uuid, nonce text, expire_time timestamptz)
    ), live as (
      select c.credential_id from credential c join organization o using (organization_id)
      where c.credential_id in (select credential_id from input) and o.disable_time is null
    ), spent as (
      insert into request_nonce (credential_id, nonce, expire_time)
      select credential_id, nonce, expire_time from input join live using (credential_id)
      order by credential_id, nonce
      on conflict do nothing
      returning credential_id, nonce
    )
    select i.credential_id, i.nonce,
      case when s.nonce is not null then 'spent'
           when l.credential_id is not null then 'reused' else 'gone' end as outcome
    from input i
    left join live l using (credential_id)
    left join spent s on s.credential_id = i.credential_id and s.nonce = i.nonce`.execute(db)
  const outcomes = new Map(rows.map((row) => [keyOf(row), row.outcome]))
  return uses.map((use) => {
    const key = keyOf(use)
    const outcome = outcomes.get(key) ?? 'gone'
    // The next equal one of this batch comes second.
    if (outcome === 'spent') outcomes.set(key, 'reused')
    return outcome
  })
}

/** Forgets up to `limit` nonces whose time has passed, and says how many. */
export const deleteExpiredNonces = async (db: Db, now: Date, limit: number): Promise<number> => {
  const { numAffectedRows } = await sql`
    delete from request_nonce where (credential_id, nonce) in (
      select credential_id, nonce from request_nonce where expire_time < ${now}
      order by expire_time limit ${limit} for update skip locked)`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
