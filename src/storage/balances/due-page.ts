import { type RawBuilder, sql } from 'kysely'

/** What a head makes due, and how much of it is taken at once. */
export type DuePage = { network_id: number; head: number; limit: number }

/** The last block that a wallet `w` shows at a head. What was confirmed stays so where it asks for more confirmations. */
export const confirmedBlock = (head: number): RawBuilder<unknown> =>
  sql`greatest(${head}::int8 - greatest(w.confirmation, 1) + 1, w.confirmed_block)`

/** What has an order of its own, along an index: net changes, work that needs a reading, and readings that wait. */
const queues = {
  // Those for which a balance was looked for and not found (`applyDeltas`) wait for a reading.
  deltas: { table: 'balance_change', of: sql`and delta is not null and ahead is not true` },
  unread: { table: 'balance_change', of: sql`and (delta is null or ahead)` },
  pending: { table: 'balance_pending', of: sql`` },
}

/**
 * A page of what is due of a kind, in turns of the organizations: the oldest of each, so many in all. A lower confirmation of
 * a wallet may make a million rows due before everything else that is due. Costs a look-up in the index per organization that has
 * something waiting, and the rows of the page.
 */
export const duePage = (
  queue: keyof typeof queues,
  { network_id, head, limit }: DuePage,
): RawBuilder<unknown> => {
  const { table, of } = queues[queue]
  const first = (than: RawBuilder<unknown>) => sql`
    select organization_id, due_block from ${sql.table(table)}
    where network_id = ${network_id} ${of} ${than} order by organization_id, due_block limit 1`
  return sql`
    with recursive step as (
      (${first(sql``)})
      union all
      select n.* from step cross join lateral (
        ${first(sql`and organization_id > step.organization_id`)}) n),
    turn as (
      select organization_id from step where due_block <= ${head}
      order by due_block, organization_id limit ${limit}),
    part as (select greatest(1, ${limit}::int8 / greatest(1, count(*))) as count from turn)
    select d.* from turn cross join lateral (
      select * from ${sql.table(table)}
      where network_id = ${network_id} ${of} and organization_id = turn.organization_id and due_block <= ${head}
      order by due_block limit (select count from part)) d`
}
