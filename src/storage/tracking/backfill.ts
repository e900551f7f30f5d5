import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

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
