import { type RawBuilder, sql } from 'kysely'

/** What a head makes due, and how much of it is taken at once. */
export type DuePage = { network_id: number; head: number; limit: number }

/**
 * A page of what is due of a table, in turns of the organizations: the oldest of each, so many in all. A lower confirmation of
 * a wallet may make a million rows due before everything else that is due. Costs a look-up in the index per organization that has
 * something waiting, and the rows of the page.
 */
export const duePage = (
  table: 'balance_change' | 'balance_pending',
  { network_id, head, limit }: DuePage,
): RawBuilder<unknown> => {
  const first = (than: RawBuilder<unknown>) => sql`
    select organization_id, due_block from ${sql.table(table)}
    where network_id = ${network_id} ${than} order by organization_id, due_block limit 1`
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
      where network_id = ${network_id} and organization_id = turn.organization_id and due_block <= ${head}
      order by due_block limit (select count from part)) d`
}
