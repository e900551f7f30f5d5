import { sql } from 'kysely'
import type { Db } from '../../src/storage/pg/database.ts'

/** Whether a head makes balance work due that is not done, wherever it waits. */
export const isBalanceDue = async (db: Db, chain_id: number, head: number): Promise<boolean> => {
  const { rows } = await sql`
    (select 1 from balance_change where chain_id = ${chain_id} and due_block <= ${head} limit 1)
    union all
    (select 1 from balance_backlog where chain_id = ${chain_id} and due_block <= ${head} limit 1)
    union all
    (select 1 from balance_pending where chain_id = ${chain_id} and due_block <= ${head} limit 1)
    union all
    (select 1 from balance_reopening o where o.chain_id = ${chain_id} and o.block_number <= ${head}
      and o.block_number + (select coalesce(greatest(max(w.confirmation), 1), 1) from wallet w
        where w.chain_id = ${chain_id} and w.confirmation <= 32) - 1 <= ${head})`.execute(db)
  return rows.length > 0
}
