import { type RawBuilder, sql } from 'kysely'

/**
 * Locks rows of the queue in the order of their ids. Whoever changes several of them locks so, after
 * the webhooks and those in the order of their ids, so that writers wait but never in a circle.
 * A claim alone does not: it waits for nobody.
 */
export const heldInOrder = (rows: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select count(*) as held from (
    select 1 from delivery_queue where ${rows} order by webhook_history_id for update) q`

/** The same for rows by their ids. */
export const heldById = (ids: readonly string[]): RawBuilder<unknown> =>
  heldInOrder(sql`webhook_history_id = any(${ids as string[]}::uuid[])`)
