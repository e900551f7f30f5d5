import { sql } from 'kysely'
import type { Db } from '../../src/storage/database.ts'

/** Whether a head makes balance work due that is not done, wherever it waits. */
export const isBalanceDue = async (db: Db, chain_id: number, head: number): Promise<boolean> => {
  const { rows } = await sql`
    (select 1 from balance_change where chain_id = ${chain_id} and due_block <= ${head} limit 1)
    union all
    (select 1 from balance_backlog where chain_id = ${chain_id} and due_block <= ${head} limit 1)`.execute(
    db,
  )
  return rows.length > 0
}
