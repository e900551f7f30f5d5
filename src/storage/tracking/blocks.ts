// The state of tracking: networks, cursors, blocks, gaps, leases, jobs and operational events. It uses `pg`. A
// writer of blocks checks the epoch of its lease in the same transaction, so that a holder that was replaced
// cannot write. `docs/architecture.md` has the lock order.

import { type RawBuilder, sql } from 'kysely'
import { insertRows } from '../pg/bulk.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import { prepared } from '../pg/prepared.ts'
import type { walletTables } from '../wallets/tables.ts'

/** How far a tracker is. */
export type CursorRow = RowOf<typeof walletTables.tracker_cursor>

/** A stored block. */
export type BlockRow = RowOf<typeof walletTables.block>

const name = 'tracker'

/** The last block that was stored; undefined before the first one. */
export const findCursor = async (db: Db, network_id: number): Promise<CursorRow | undefined> =>
  await db
    .selectFrom('tracker_cursor')
    .selectAll()
    .where('network_id', '=', network_id)
    .where('name', '=', name)
    .executeTakeFirst()

// The spaces of advisory locks whose second key is the network_id.
const cursorClass = 5_713_303
const turnClass = 5_713_306

/**
 * PostgreSQL lets `for share` pass a waiting `for update`, so shared lockers that overlap would keep
 * a writer waiting without end. Advisory locks queue in the order of arrival. The row is locked after
 * the advisory lock (`lateral` and `offset 0` fix that order): this reads its newest version although
 * the snapshot of the statement is older than the wait, and it excludes processes of an older version
 * of Portolan, which lock the row alone.
 */
const lockedCursor = async (
  db: Db,
  network_id: number,
  { take, row, before }: { take: string; row: string; before?: RawBuilder<unknown> },
): Promise<CursorRow | undefined> => {
  const { rows } = await sql<CursorRow>`${sql.raw(prepared)}
    select c.* from ${before ?? sql``} (
      select count(${sql.raw(take)}(${sql.lit(cursorClass)}, ${network_id}::int4)) as held
      ${before ? sql`from (select where t.turn > 0 offset 0) o` : sql``}) l
    cross join lateral (
      select network_id, name, block_number, block_hash, detail, update_time from tracker_cursor
      where network_id = ${network_id} and name = ${name} and l.held > 0 offset 0
      ${sql.raw(row)}) c`.execute(db)
  return rows[0]
}

/**
 * The cursor, once no block is being stored. A tracker locks it before it looks up who is tracked:
 * blocks after this one are matched against everything that was committed before the call.
 */
export const awaitCursor = async (db: Db, network_id: number): Promise<CursorRow | undefined> =>
  await lockedCursor(db, network_id, {
    take: 'pg_advisory_xact_lock_shared',
    row: 'for share',
  })

/** The cursor, locked against other writers and against awaitCursor until the transaction ends. */
export const lockCursor = async (trx: Db, network_id: number): Promise<CursorRow | undefined> =>
  await lockedCursor(trx, network_id, { take: 'pg_advisory_xact_lock', row: 'for update' })

/**
 * The same for a request. Only one of them waits for the cursor at a time: behind fifty requests that wait for it, a block
 * would wait for all of them.
 */
export const lockCursorInTurn = async (
  trx: Db,
  network_id: number,
): Promise<CursorRow | undefined> =>
  await lockedCursor(trx, network_id, {
    take: 'pg_advisory_xact_lock',
    row: 'for update',
    // In the same statement, which saves a round trip; the condition keeps the order.
    before: sql`(
      select count(pg_advisory_xact_lock(${sql.lit(turnClass)}, ${network_id}::int4)) as turn) t
    cross join lateral`,
  })

/** Moves the cursor. */
export const setCursor = async (
  trx: Db,
  cursor: Omit<CursorRow, 'name' | 'detail'> & { detail?: unknown },
): Promise<void> => {
  const detail = cursor.detail === undefined ? null : JSON.stringify(cursor.detail)
  const { network_id, block_number, block_hash, update_time } = cursor
  await sql`${sql.raw(prepared)}
    insert into tracker_cursor (network_id, name, block_number, block_hash, detail, update_time)
    values (${network_id}, ${name}, ${block_number}, ${block_hash}, ${detail}::jsonb, ${update_time})
    on conflict (network_id, name) do update set block_number = excluded.block_number,
      block_hash = excluded.block_hash, detail = excluded.detail,
      update_time = excluded.update_time`.execute(trx)
}

/** Stores blocks. */
export const insertBlocks = async (trx: Db, blocks: readonly BlockRow[]): Promise<void> => {
  await insertRows(trx, 'block', blocks)
}

/** The stored blocks of these numbers that exist. */
export const findBlocks = async (
  db: Db,
  network_id: number,
  numbers: readonly number[],
): Promise<BlockRow[]> =>
  await db
    .selectFrom('block')
    .selectAll()
    .where('network_id', '=', network_id)
    .where(sql<boolean>`block_number = any(${numbers as number[]}::int8[])`)
    .execute()

/** The newest stored blocks below a number, newest first. */
export const listBlocksBelow = async (
  db: Db,
  network_id: number,
  number: number,
  limit: number,
): Promise<BlockRow[]> =>
  await db
    .selectFrom('block')
    .selectAll()
    .where('network_id', '=', network_id)
    .where('block_number', '<', number)
    .orderBy('block_number', 'desc')
    .limit(limit)
    .execute()

/** The number of the oldest stored block. */
export const findLowestBlock = async (db: Db, network_id: number): Promise<number | undefined> => {
  const { rows } = await sql<{ min: number | null }>`
    select min(block_number) as min from block where network_id = ${network_id}`.execute(db)
  return rows[0]?.min ?? undefined
}

/** The oldest stored block above a number. */
export const findBlockAbove = async (
  db: Db,
  network_id: number,
  number: number,
): Promise<BlockRow | undefined> =>
  await db
    .selectFrom('block')
    .selectAll()
    .where('network_id', '=', network_id)
    .where('block_number', '>', number)
    .orderBy('block_number')
    .limit(1)
    .executeTakeFirst()

/** The highest number of a stretch of which no block is stored. */
export const findHighestMissing = async (
  db: Db,
  network_id: number,
  { from, to }: { from: number; to: number },
): Promise<number | undefined> => {
  const { rows } = await sql<{ number: number }>`
    select n.number::int8 as number from generate_series(${to}::int8, ${from}::int8, -1) n (number)
    where not exists (
      select from block where network_id = ${network_id} and block_number = n.number)
    limit 1`.execute(db)
  return rows[0]?.number
}

/**
 * Whether a block is still the stored one of its number, or older than all that are stored; it stays
 * so until the transaction ends.
 */
export const holdBlock = async (
  trx: Db,
  network_id: number,
  { number, hash }: { number: number; hash: Buffer },
): Promise<boolean> => {
  const { rows: held } = await sql`
    select 1 from block where network_id = ${network_id} and block_number = ${number}
      and block_hash = ${hash} for key share`.execute(trx)
  if (held.length > 0) return true
  const { rows: older } = await sql<{ min: number | null }>`
    select min(block_number) as min from block where network_id = ${network_id}`.execute(trx)
  const min = older[0]?.min ?? null
  return min === null || number < min
}

/** Drops the blocks above a number. */
export const deleteBlocksAbove = async (
  trx: Db,
  network_id: number,
  number: number,
): Promise<void> => {
  await sql`
    delete from block where network_id = ${network_id} and block_number > ${number}`.execute(trx)
}

/**
 * Forgets what can no longer leave the chain: blocks below a number that are older than a time or
 * below the lowest one that is kept, and what was read at them.
 */
export const trimBlocks = async (
  trx: Db,
  network_id: number,
  { number, before, lowest }: { number: number; before: Date; lowest: number },
): Promise<void> => {
  // Oldest first by the key: the first one that is young enough ends the search.
  const { rows } = await sql<{ block_number: number }>`
    select block_number from block
    where network_id = ${network_id}
      and (block_number >= ${number} or (block_number >= ${lowest} and block_time >= ${before}))
    order by block_number limit 1`.execute(trx)
  const below = Math.min(rows[0]?.block_number ?? number, number)
  await sql`delete from block where network_id = ${network_id} and block_number < ${below}`.execute(
    trx,
  )
  await sql`
    delete from balance_reading
    where network_id = ${network_id} and block_number < ${below}`.execute(trx)
}

/** A stretch of history that is being indexed; it keeps its place beside the tracker's cursor. */
export type BackfillRange = { network_id: number; from: number; to: number }

const nameOf = ({ from, to }: BackfillRange) => `backfill:${from}-${to}`

/** The last block of a stretch that was done before; undefined when it was not begun. */
export const findBackfill = async (db: Db, range: BackfillRange): Promise<number | undefined> => {
  const row = await db
    .selectFrom('tracker_cursor')
    .select('block_number')
    .where('network_id', '=', range.network_id)
    .where('name', '=', nameOf(range))
    .executeTakeFirst()
  return row?.block_number
}

/** Notes how far a stretch is. */
export const setBackfill = async (
  trx: Db,
  range: BackfillRange,
  done: { block_number: number; block_hash: Buffer; update_time: Date },
): Promise<void> => {
  await sql`
    insert into tracker_cursor (network_id, name, block_number, block_hash, update_time)
    values (${range.network_id}, ${nameOf(range)}, ${done.block_number}, ${done.block_hash},
      ${done.update_time})
    on conflict (network_id, name) do update set block_number = excluded.block_number,
      block_hash = excluded.block_hash, update_time = excluded.update_time`.execute(trx)
}

/** Ends a stretch. */
export const finishBackfill = async (db: Db, range: BackfillRange): Promise<void> => {
  await sql`
    delete from tracker_cursor
    where network_id = ${range.network_id} and name = ${nameOf(range)}`.execute(db)
}
