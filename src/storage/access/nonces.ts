import { CompiledQuery, sql } from 'kysely'
import type { Database, Db } from '../pg/database.ts'
import { createStatement, prepared } from '../pg/prepared.ts'
import { createNonceLeads, isAhead, type RequestNonce } from './nonce-leads.ts'
import { createNonceMemory, isTrusted, type NonceMemory } from './nonce-memory.ts'

/**
 * What became of it: `gone` when the credential was deleted or its organization disabled meanwhile,
 * `changed` when the credential is of another revision than the one the request was judged by,
 * `unsure` when it is of a time whose nonces a crash or a restore of the database may have forgotten.
 */
export type NonceOutcome = 'spent' | 'reused' | 'gone' | 'changed' | 'unsure'

type Key = Pick<RequestNonce, 'credential_id' | 'nonce'>
const keyOf = ({ credential_id, nonce }: Key): string => `${credential_id} ${nonce}`

/** Nonces further ahead of the database's clock wait for its disk. */
const ahead = "interval '1 second'"

/** Spends a batch of nonces in one statement; answers in the order given. */
export type SpendNonces = (uses: readonly RequestNonce[]) => Promise<NonceOutcome[]>

/**
 * Of equal nonces exactly one is `spent`, in this batch and over all replicas, whatever crashes.
 *
 * It does not wait for the disk, which takes longer than everything else that a read does. So the
 * newest nonces may be lost with a crash of the database; after one, `nonce_memory` is empty, and
 * all nonces of up to that time are refused. Nonces of a later time than that are committed to disk.
 * A restore brings back a memory that lacks the nonces spent after the dump: `nonce-memory.ts`.
 * What an operation writes is committed after its nonce, and to disk: then the nonce is there too.
 */
export const createSpendNonces = (
  { db, pool }: Pick<Database, 'db' | 'pool'>,
  memory: NonceMemory = createNonceMemory(db),
): SpendNonces => {
  const insert = createStatement(pool, insertOne)
  const leads = createNonceLeads(db)

  // A single caller waits a third less than for a batch of one.
  const spendOne = (use: RequestNonce): Promise<NonceOutcome[]> => {
    const { promise, resolve, reject } = Promise.withResolvers<NonceOutcome[]>()
    const { credential_id, nonce, time, expire_time, revision } = use
    const values = [
      ...[credential_id, nonce, expire_time.toISOString(), time.toISOString()],
      ...[String(revision ?? -1), memory.newest()],
    ]
    insert(values, (error, rowCount) => {
      if (error) reject(error)
      else if (rowCount === 1) resolve(['spent'])
      else resolve(explain(db, memory, [use]).then((found) => [found.get(keyOf(use)) ?? 'unsure']))
    })
    return promise
  }

  const spend: SpendNonces = (uses) =>
    uses.length === 1 ? spendOne(uses[0]!) : spendMany(db, memory, uses)

  // Nonces far ahead of the clock are noted before they are spent: after a restore they are refused
  // for longer.
  return (uses) => {
    const ahead = uses.filter(isAhead)
    return ahead.length === 0 ? spend(uses) : leads.note(ahead).then(() => spend(uses))
  }
}

async function spendMany(
  db: Db,
  memory: NonceMemory,
  uses: readonly RequestNonce[],
): Promise<NonceOutcome[]> {
  if (uses.length === 0) return []
  // Duplicates within a batch are removed first, because one statement cannot insert and conflict
  // with its own row.
  const distinct = [...new Map(uses.map((use) => [keyOf(use), use])).values()]
  const spent = await insertNonces(db, memory, distinct)
  const unspent = distinct.filter((use) => !spent.has(keyOf(use)))
  const outcomes =
    unspent.length > 0 ? await explain(db, memory, unspent) : new Map<string, NonceOutcome>()
  return uses.map((use) => {
    const key = keyOf(use)
    if (!spent.has(key)) return outcomes.get(key) ?? 'unsure'
    // The next equal one of this batch comes second.
    spent.delete(key)
    outcomes.set(key, 'reused')
    return 'spent'
  })
}

async function insertNonces(
  db: Db,
  memory: NonceMemory,
  uses: readonly RequestNonce[],
): Promise<Set<string>> {
  const latest = new Date(Math.max(...uses.map(({ time }) => time.getTime())))
  const values = [...columnsOf(uses), latest, memory.newest()]
  const { rows } = await db.executeQuery<Key>(CompiledQuery.raw(insertMany, values))
  return new Set(rows.map(keyOf))
}

/** Nonces of the recent past and of the next second are committed without waiting for the disk. */
const commitBy = (latest: string) => `set_config('synchronous_commit', case
  when ${latest}::timestamptz <= now() + ${ahead} then 'off'
  else current_setting('synchronous_commit') end, true)`

const insertOne = `insert into request_nonce (credential_id, nonce, expire_time)
  select c.credential_id, $2::text, $3::timestamptz
  from credential c
    join organization o on o.organization_id = c.organization_id and o.disable_time is null
    join nonce_memory m on m.id = 1 and ${isTrusted('$4::timestamptz', '$6::timestamptz')}
  where c.credential_id = $1::uuid and ($5::int4 < 0 or coalesce(c.revision, 0) = $5::int4)
    and ${commitBy('$4')} is not null
  on conflict do nothing`

// The text is fixed: to build it for every request would cost a fifth of asking for it.
const unnested = `unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::int4[])
  as i (credential_id, nonce, expire_time, time, revision)`

const columnsOf = (uses: readonly RequestNonce[]): string[][] => [
  uses.map(({ credential_id }) => credential_id),
  uses.map(({ nonce }) => nonce),
  uses.map(({ expire_time }) => expire_time.toISOString()),
  uses.map(({ time }) => time.toISOString()),
  uses.map(({ revision }) => String(revision ?? -1)),
]

/** In one order everywhere: two batches that wait for each other's rows would deadlock. */
const insertMany = `${prepared} insert into request_nonce (credential_id, nonce, expire_time)
  select i.credential_id, i.nonce, i.expire_time
  from (select ${commitBy('$6')}) as commit, ${unnested}
    join credential c on c.credential_id = i.credential_id
      and (i.revision < 0 or coalesce(c.revision, 0) = i.revision)
    join organization o on o.organization_id = c.organization_id and o.disable_time is null
    join nonce_memory m on ${isTrusted('i.time', '$7::timestamptz')}
  order by i.credential_id, i.nonce
  on conflict do nothing
  returning credential_id, nonce`

const whyNot = `select i.credential_id, i.nonce, case when o.organization_id is null then 'gone'
    when i.revision >= 0 and coalesce(c.revision, 0) <> i.revision then 'changed'
    when n.nonce is not null then 'reused' else 'unsure' end as outcome
  from ${unnested}
    left join credential c on c.credential_id = i.credential_id
    left join organization o on o.organization_id = c.organization_id and o.disable_time is null
    left join request_nonce n on n.credential_id = i.credential_id and n.nonce = i.nonce`

/** Why these were not spent. */
async function explain(
  db: Db,
  memory: NonceMemory,
  uses: readonly RequestNonce[],
): Promise<Map<string, NonceOutcome>> {
  const { rows } = await db.executeQuery<Key & { outcome: NonceOutcome }>(
    CompiledQuery.raw(whyNot, columnsOf(uses)),
  )
  // The memory may have been renewed by another process; the next request is then judged by the new
  // state.
  if (rows.some(({ outcome }) => outcome === 'unsure')) await memory.renew()
  return new Map(rows.map((row) => [keyOf(row), row.outcome]))
}

/** Deletes up to `limit` expired nonces and returns their number. */
export const deleteExpiredNonces = async (db: Db, now: Date, limit: number): Promise<number> => {
  // By place: joined by its key, a batch reads the whole table.
  const { numAffectedRows } = await sql`
    delete from request_nonce where ctid = any(array(
      select ctid from request_nonce where expire_time < ${now}
      order by expire_time limit ${limit} for update skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
