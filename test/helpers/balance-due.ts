import { sql } from 'kysely'
import type { Db } from '../../src/storage/pg/database.ts'

/** Whether a head makes balance work due that is not done, wherever it waits. */
export const isBalanceDue = async (db: Db, network_id: number, head: number): Promise<boolean> => {
  const { rows } = await sql`
    (select 1 from balance_change where network_id = ${network_id} and due_block <= ${head} limit 1)
    union all
    (select 1 from balance_backlog where network_id = ${network_id} and due_block <= ${head} limit 1)
    union all
    (select 1 from balance_pending where network_id = ${network_id} and due_block <= ${head} limit 1)
    union all
    (select 1 from balance_reopening o where o.network_id = ${network_id} and o.block_number <= ${head}
      and o.block_number + (select coalesce(greatest(max(w.confirmation), 1), 1) from wallet w
        where w.network_id = ${network_id} and w.confirmation <= 32) - 1 <= ${head})`.execute(db)
  return rows.length > 0
}
