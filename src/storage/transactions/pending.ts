// Pending transactions of the query chain. Any sender on the chain fills this table, so `forgetPending` bounds its size.
// What has left the pool stays readable for `readableMs`, because clients ask for it after it was mined or replaced.

import { sql } from 'kysely'
import { pendingReadableHours } from '../../contract/limits.ts'
import { bulkRows } from '../pg/bulk.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { transactionTables } from './tables.ts'

/** A recorded pending transaction. */
export type PendingRow = RowOf<typeof transactionTables.pending_transaction>

/** What the recorder knows of a transaction when it sees it. */
export type SeenPending = Pick<
  PendingRow,
  'transaction_hash' | 'from' | 'nonce' | 'record_time' | 'leave_time'
> & { detail: object }

/**
 * Records what was seen. What is there keeps its time; if it had left and is pending again, it is back.
 * Says how many are new or back, and whether something else with the same sender and nonce waits, which one
 * of the two will replace.
 */
export const recordPending = async (
  db: Db,
  network_id: number,
  seen: readonly SeenPending[],
): Promise<{ stored: number; replaces: boolean }> => {
  if (seen.length === 0) return { stored: 0, replaces: false }
  // In the order of the key, so that two processes that record the same do not wait for each other.
  const rows = seen
    .map((row) => ({ ...row, network_id, check_time: row.record_time }))
    .toSorted((one, other) => Buffer.compare(one.transaction_hash, other.transaction_hash))
  // Only a row that had left is updated, so a repeated announcement writes nothing.
  const stored = await sql`
    insert into pending_transaction
      (network_id, transaction_hash, "from", nonce, detail, record_time, leave_time, check_time)
    select network_id, transaction_hash, "from", nonce, detail, record_time, leave_time, check_time
    from json_populate_recordset(null::pending_transaction, ${bulkRows(rows)}::text::json)
    on conflict (network_id, transaction_hash) do update
      set leave_time = null, check_time = excluded.check_time
      where pending_transaction.leave_time is not null and excluded.leave_time is null`.execute(db)
  // Both of a pair are checked next: one of them has to go, and only the nodes know which.
  const { numAffectedRows } = await sql`
    update pending_transaction set check_time = null
    where network_id = ${network_id} and transaction_hash in (
      select old.transaction_hash
      from json_populate_recordset(null::pending_transaction, ${bulkRows(rows)}::text::json) new
      join pending_transaction old on old.network_id = new.network_id and old."from" = new."from"
        and old.nonce = new.nonce and old.transaction_hash <> new.transaction_hash
      where old.leave_time is null
      for update of old skip locked)`.execute(db)
  return {
    stored: Number(stored.numAffectedRows ?? 0n),
    replaces: (numAffectedRows ?? 0n) > 0n,
  }
}

/** How long a transaction that left the pool stays readable (docs/decisions/queries.md). */
export const readableMs = pendingReadableHours * 3_600_000

/** A recorded transaction, also one that has left the pool, but not longer ago than that. */
export const findPending = async (
  db: Db,
  network_id: number,
  { transaction_hash, now }: { transaction_hash: Buffer; now: number },
): Promise<Pick<PendingRow, 'detail' | 'record_time'> | undefined> =>
  await db
    .selectFrom('pending_transaction')
    .select(['detail', 'record_time'])
    .where('network_id', '=', network_id)
    .where('transaction_hash', '=', transaction_hash)
    .where(({ eb, or }) =>
      or([eb('leave_time', 'is', null), eb('leave_time', '>', new Date(now - readableMs))]),
    )
    .executeTakeFirst()

/** What waits of a sender, in the order in which it can be mined. */
export const listPending = async (
  db: Db,
  network_id: number,
  { from, nonce, limit }: { from: Buffer; nonce?: number | undefined; limit: number },
): Promise<Pick<PendingRow, 'detail' | 'record_time'>[]> => {
  const all = db
    .selectFrom('pending_transaction')
    .select(['detail', 'record_time'])
    .where('network_id', '=', network_id)
    .where('from', '=', from)
    .where('leave_time', 'is', null)
    .orderBy('nonce')
    .orderBy('record_time')
    .limit(limit)
  return await (nonce === undefined ? all : all.where('nonce', '=', nonce)).execute()
}

/** Takes waiting transactions that were not asked for since `before`, the longest ago first. */
export const claimUnchecked = async (
  db: Db,
  network_id: number,
  { now, before, limit }: { now: Date; before: Date; limit: number },
): Promise<Buffer[]> => {
  // `skip locked`: processes share the work instead of asking for the same transactions.
  const { rows } = await sql<{ transaction_hash: Buffer }>`
    update pending_transaction set check_time = ${now}
    where network_id = ${network_id} and transaction_hash in (
      select transaction_hash from pending_transaction
      where network_id = ${network_id} and leave_time is null
        and (check_time is null or check_time <= ${before})
      order by check_time nulls first limit ${limit} for update skip locked)
    returning transaction_hash`.execute(db)
  return rows.map(({ transaction_hash }) => transaction_hash)
}

/** These have left the pool: mined, replaced or dropped. */
export const markLeft = async (
  db: Db,
  network_id: number,
  hashes: readonly Buffer[],
  leave_time: Date,
): Promise<void> => {
  if (hashes.length === 0) return
  await sql`
    update pending_transaction set leave_time = ${leave_time}
    where network_id = ${network_id} and leave_time is null and transaction_hash in (
      select transaction_hash from pending_transaction
      where network_id = ${network_id} and transaction_hash = any(${hashes as Buffer[]}::bytea[])
      order by transaction_hash for update)`.execute(db)
}

/** The block of these has left the chain: they wait again, and are checked next. */
export const markReturned = async (
  db: Db,
  network_id: number,
  hashes: readonly Buffer[],
): Promise<void> => {
  if (hashes.length === 0) return
  await sql`
    update pending_transaction set leave_time = null, check_time = null
    where network_id = ${network_id} and leave_time is not null and transaction_hash in (
      select transaction_hash from pending_transaction
      where network_id = ${network_id} and transaction_hash = any(${hashes as Buffer[]}::bytea[])
      order by transaction_hash for update)`.execute(db)
}

/** Forgets what left before this time, and the oldest beyond so many; at most `limit` of each at once. */
export const forgetPending = async (
  db: Db,
  network_id: number,
  { leftBefore, max, limit }: { leftBefore: Date; max: number; limit: number },
): Promise<{ expired: number; beyond: number }> => {
  const expired = await sql`
    delete from pending_transaction where network_id = ${network_id} and transaction_hash in (
      select transaction_hash from pending_transaction
      where network_id = ${network_id} and leave_time < ${leftBefore}
      limit ${limit} for update skip locked)`.execute(db)
  // By the time of recording: beyond the bound the newest are kept, because clients ask for those.
  const beyond = await sql`
    delete from pending_transaction where network_id = ${network_id} and transaction_hash in (
      select transaction_hash from pending_transaction
      where network_id = ${network_id}
      order by record_time desc, transaction_hash offset ${max} limit ${limit})`.execute(db)
  return {
    expired: Number(expired.numAffectedRows ?? 0n),
    beyond: Number(beyond.numAffectedRows ?? 0n),
  }
}

/** How many are stored, and how many of them wait. */
export const countPending = async (
  db: Db,
  network_id: number,
): Promise<{ kept: number; waiting: number }> => {
  const { rows } = await sql<{ kept: number; waiting: number }>`
    select count(*) as kept, count(*) filter (where leave_time is null) as waiting
    from pending_transaction where network_id = ${network_id}`.execute(db)
  return rows[0] ?? { kept: 0, waiting: 0 }
}
