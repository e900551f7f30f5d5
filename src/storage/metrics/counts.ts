import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** Work that waits in the database, of all processes. */
export type QueueCounts = {
  /** Notifications that are due or wait for a retry. */
  deliveries: number
  /** Events that are not expanded to notifications yet. */
  notification_events: number
  state_events: number
  /** Balances that a block made due, or will. */
  balance_changes: number
  jobs: number
}

/** A queue is not counted beyond this: counting must stay cheap while a queue is long. */
export const mostCounted = 10_000

const counted = (rows: ReturnType<typeof sql>) =>
  sql`(select count(*)::int4 from (${rows} limit ${mostCounted}) r)`

/** Counts the rows of the queues. */
export const countQueues = async (db: Db): Promise<QueueCounts> => {
  const { rows } = await sql<QueueCounts>`
    select
      ${counted(sql`select 1 from delivery_queue where next_attempt_time is not null`)} as deliveries,
      ${counted(sql`select 1 from notification_event`)} as notification_events,
      ${counted(sql`select 1 from state_event`)} as state_events,
      ${counted(sql`select 1 from balance_change`)} as balance_changes,
      ${counted(sql`select 1 from job where next_attempt_time is not null`)} as jobs`.execute(db)
  return rows[0]!
}

/** Webhooks that are disabled, by network. */
export const countDisabledWebhooks = async (
  db: Db,
): Promise<{ chain: string; network: string; count: number }[]> => {
  const { rows } = await sql<{ chain: string; network: string; count: number }>`
    select n.chain, n.network, count(w.webhook_id)::int4 as count
    from network n
    left join webhook w on w.network_id = n.network_id
      and w.webhook_state = 'WEBHOOK_STATE_DISABLED'
    group by n.chain, n.network`.execute(db)
  return rows
}

/** The leases that are held now, and by which holder. */
export const listHeldLeases = async (db: Db): Promise<{ name: string; holder: string }[]> => {
  const { rows } = await sql<{ name: string; holder: string }>`
    select name, holder from lease where expire_time > clock_timestamp()`.execute(db)
  return rows
}
