import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** The last tracked block of a network. */
export type StoredHead = {
  network_id: number
  block_number: number
  block_hash: Buffer
  block_time: Date | null
  update_time: Date
}

/** The last tracked blocks of some networks. */
export const listHeads = async (db: Db, network_ids: readonly number[]): Promise<StoredHead[]> => {
  const { rows } = await sql<StoredHead>`
    select c.network_id, c.block_number, c.block_hash, b.block_time, c.update_time
    from tracker_cursor c left join block b
      on b.network_id = c.network_id and b.block_number = c.block_number
    where c.name = 'tracker' and c.network_id = any(${network_ids as number[]}::int2[])`.execute(db)
  return rows
}
