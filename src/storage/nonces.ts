import { sql } from 'kysely'
import type { Db } from './database.ts'
import { prepared } from './prepared.ts'

/** A nonce that a correctly signed request carried. */
export type NonceUse = {
  credential_id: string
  nonce: string
  /** The time that the nonce names. */
  time: Date
  expire_time: Date
}

/**
 * What became of it: `gone` when the credential was deleted or its organization disabled meanwhile,
 * `unsure` when it is of a time whose nonces a crash of the database may have forgotten.
 */
export type NonceOutcome = 'spent' | 'reused' | 'gone' | 'unsure'

type Key = Pick<NonceUse, 'credential_id' | 'nonce'>
const keyOf = ({ credential_id, nonce }: Key): string => `${credential_id} ${nonce}`

/** Nonces further ahead of the database's clock wait for its disk. */
const ahead = sql`interval '1 second'`
/** So far a crash may have taken them: a little further, should the clock have been set meanwhile. */
export const distrustedMs = 2_000

/**
 * Spends a batch of nonces in one statement; answers in the order given. Of equal ones exactly one
 * is `spent`, in this batch and over all replicas, whatever crashes.
 *
 * It does not wait for the disk, which takes longer than everything else that a read does. So the
 * newest nonces may be lost with a crash of the database; after one, `nonce_memory` is empty, and
 * all nonces of up to that time are refused. Nonces of a later time than that are committed to disk.
 * What an operation writes is committed after its nonce, and to disk: then the nonce is there too.
 */
export const spendNonces = async (db: Db, uses: readonly NonceUse[]): Promise<NonceOutcome[]> => {
  if (uses.length === 0) return []
  const distinct = [...new Map(uses.map((use) => [keyOf(use), use])).values()]
  const spent = await insertNonces(db, distinct)
  const unspent = distinct.filter((use) => !spent.has(keyOf(use)))
  const outcomes = unspent.length > 0 ? await explain(db, unspent) : new Map<string, NonceOutcome>()
  return uses.map((use) => {
    const key = keyOf(use)
    if (!spent.has(key)) return outcomes.get(key) ?? 'unsure'
    // The next equal one of this batch comes second.
    spent.delete(key)
    outcomes.set(key, 'reused')
    return 'spent'
  })
}

async function insertNonces(db: Db, uses: readonly NonceUse[]): Promise<Set<string>> {
  const latest = new Date(Math.max(...uses.map(({ time }) => time.getTime())))
  const { rows } = await (uses.length === 1
    ? insertOne(uses[0]!)
    : insertMany(uses, latest)
  ).execute(db)
  return new Set(rows.map(keyOf))
}

/** Nonces of the recent past and of the next second are committed without waiting for the disk. */
const commitBy = (latest: Date) => sql`(select set_config('synchronous_commit', case
  when ${latest}::timestamptz <= now() + ${ahead} then 'off'
  else current_setting('synchronous_commit') end, true)) as commit`

/** A caller who is alone waits for a third less than for a batch of one. */
const insertOne = ({ credential_id, nonce, time, expire_time }: NonceUse) =>
  sql<Key>`${sql.raw(prepared)}
    insert into request_nonce (credential_id, nonce, expire_time)
    select ${credential_id}::uuid, ${nonce}::text, ${expire_time}::timestamptz
    from ${commitBy(time)}, credential c
      join organization o on o.organization_id = c.organization_id and o.disable_time is null
      join nonce_memory m on m.id = 1 and m.trusted_after < ${time}::timestamptz
    where c.credential_id = ${credential_id}::uuid
    on conflict do nothing
    returning credential_id, nonce`

/** In one order everywhere: two batches that wait for each other's rows would deadlock. */
const insertMany = (uses: readonly NonceUse[], latest: Date) =>
  sql<Key>`${sql.raw(prepared)}
    insert into request_nonce (credential_id, nonce, expire_time)
    select i.credential_id, i.nonce, i.expire_time
    from ${commitBy(latest)},
      ${unnested(uses)}
      join credential c on c.credential_id = i.credential_id
      join organization o on o.organization_id = c.organization_id and o.disable_time is null
      join nonce_memory m on i.time > m.trusted_after
    order by i.credential_id, i.nonce
    on conflict do nothing
    returning credential_id, nonce`

/** Why these were not spent. */
async function explain(db: Db, uses: readonly NonceUse[]): Promise<Map<string, NonceOutcome>> {
  const { rows } = await sql<Key & { outcome: NonceOutcome }>`
    select i.credential_id, i.nonce, case when o.organization_id is null then 'gone'
      when n.nonce is not null then 'reused' else 'unsure' end as outcome
    from ${unnested(uses)}
    left join credential c on c.credential_id = i.credential_id
    left join organization o on o.organization_id = c.organization_id and o.disable_time is null
    left join request_nonce n on n.credential_id = i.credential_id and n.nonce = i.nonce`.execute(
    db,
  )
  if (rows.some(({ outcome }) => outcome === 'unsure')) await renewNonceMemory(db)
  return new Map(rows.map((row) => [keyOf(row), row.outcome]))
}

const unnested = (uses: readonly NonceUse[]) => sql`unnest(
  ${uses.map(({ credential_id }) => credential_id)}::uuid[],
  ${uses.map(({ nonce }) => nonce)}::text[],
  ${uses.map(({ expire_time }) => expire_time.toISOString())}::timestamptz[],
  ${uses.map(({ time }) => time.toISOString())}::timestamptz[]
) as i (credential_id, nonce, expire_time, time)`

/**
 * Begins to trust nonces again after a crash of the database, those that are later than now by
 * `distrustedMs`; says whether there was one.
 */
export const renewNonceMemory = async (db: Db): Promise<boolean> => {
  const { numAffectedRows } = await sql`
    insert into nonce_memory (id, trusted_after)
    values (1, clock_timestamp() + ${distrustedMs} * interval '1 millisecond')
    on conflict do nothing`.execute(db)
  return numAffectedRows === 1n
}

/** Forgets up to `limit` nonces whose time has passed, and says how many. */
export const deleteExpiredNonces = async (db: Db, now: Date, limit: number): Promise<number> => {
  const { numAffectedRows } = await sql`
    delete from request_nonce where (credential_id, nonce) in (
      select credential_id, nonce from request_nonce where expire_time < ${now}
      order by expire_time limit ${limit} for update skip locked)`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
