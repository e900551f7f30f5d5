import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** One key of one credential. */
export type IdempotencyKey = { credential_id: string; key_hash: Buffer }

/** A request that wants to be the one that is carried out. */
export type Claim = IdempotencyKey & {
  organization_id: string
  operation: string
  request_hash: Buffer
  claim_id: string
  claim_until: Date
  expire_time: Date
}

/** What another request has left. */
export type Claimed = {
  operation: string
  request_hash: Buffer
  claim_until: Date
  answer_sealed: Buffer | null
}

/** Claims a key; undefined when it is claimed now, else what another request has left. */
export const claimIdempotencyKey = async (
  db: Db,
  claim: Claim,
  now: Date,
): Promise<Claimed | undefined> => {
  for (;;) {
    // One statement claims: a new key, an expired one, or the same request whose process died
    // before it answered. Any other conflict leaves the row as it is.
    const taken = await db
      .insertInto('idempotency_key')
      .values(claim)
      .onConflict((conflict) =>
        conflict
          .columns(['credential_id', 'key_hash'])
          .doUpdateSet({ ...claim, answer_sealed: null })
          .where(
            sql<boolean>`idempotency_key.expire_time <= ${now} or (
              idempotency_key.answer_sealed is null and idempotency_key.claim_until <= ${now}
              and idempotency_key.operation = excluded.operation
              and idempotency_key.request_hash = excluded.request_hash)`,
          ),
      )
      .returning('claim_id')
      .executeTakeFirst()
    if (taken) return undefined
    const present = await db
      .selectFrom('idempotency_key')
      .select(['operation', 'request_hash', 'claim_until', 'answer_sealed'])
      .where('credential_id', '=', claim.credential_id)
      .where('key_hash', '=', claim.key_hash)
      .executeTakeFirst()
    if (present) return present
    // Deleted between the two statements, so that it can be claimed now.
  }
}

type Held = IdempotencyKey & Pick<Claim, 'claim_id'>

/** Stores the answer of a claim; false when another request has taken the claim over. */
export const answerIdempotencyKey = async (
  db: Db,
  { credential_id, key_hash, claim_id }: Held,
  answer_sealed: Buffer,
): Promise<boolean> => {
  const { numUpdatedRows } = await db
    .updateTable('idempotency_key')
    .set({ answer_sealed })
    .where('credential_id', '=', credential_id)
    .where('key_hash', '=', key_hash)
    .where('claim_id', '=', claim_id)
    .where('answer_sealed', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Gives a claim up that led to no answer. */
export const releaseIdempotencyKey = async (
  db: Db,
  { credential_id, key_hash, claim_id }: Held,
): Promise<void> => {
  await db
    .deleteFrom('idempotency_key')
    .where('credential_id', '=', credential_id)
    .where('key_hash', '=', key_hash)
    .where('claim_id', '=', claim_id)
    .where('answer_sealed', 'is', null)
    .execute()
}

/** Counts the keys of an organization, no further than a limit. */
export const countIdempotencyKeys = async (
  db: Db,
  organization_id: string,
  limit: number,
): Promise<number> => {
  // The limit bounds the scan: callers only compare the count with a maximum.
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from (
      select 1 from idempotency_key where organization_id = ${organization_id} limit ${limit}) k`.execute(
    db,
  )
  return rows[0]?.count ?? 0
}

/** Deletes up to `limit` expired keys and returns their number. */
export const deleteExpiredIdempotencyKeys = async (
  db: Db,
  now: Date,
  limit: number,
): Promise<number> => {
  // By place: joined by its key, a batch reads the whole table.
  const { numAffectedRows } = await sql`
    delete from idempotency_key where ctid = any(array(
      select ctid from idempotency_key where expire_time < ${now}
      order by expire_time limit ${limit} for update skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
