// The notifications of removed blocks. Those that wait are deleted. Those that were sent are listed, so that the caller
// follows them with one with REORGED, and are detached from the block: its return makes a new generation.

import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import { type DeliveryRow, lockWebhooks, type WalletEvent } from './notifications.ts'

/** The blocks above a number that were removed, and the organizations whose notifications are retracted. */
export type Removed = { network_id: number; above: number; organization_ids: readonly string[] }

const ofRemoved = ({ network_id, above, organization_ids }: Removed) => sql`
  network_id = ${network_id} and organization_id = any(${organization_ids as string[]}::uuid[])
  and block_number > ${above}`

/** The organizations that have notifications of blocks above a number, with their count up to a limit. */
export const countNotifiedAbove = async (
  trx: Db,
  { network_id, above }: { network_id: number; above: number },
  limit: number,
): Promise<{ organization_id: string; count: number }[]> => {
  // Organizations by a loose index scan, and each count stops at the limit: a large one costs no
  // more than a small one. In the order of the index: without it the planner may read the whole table for each of them.
  const { rows } = await sql<{ organization_id: string; count: number }>`
    with recursive notified as (
      (select organization_id from delivery
        where network_id = ${network_id} and block_number is not null
        order by organization_id limit 1)
      union all
      select n.organization_id from notified m, lateral (
        select organization_id from delivery
        where network_id = ${network_id} and block_number is not null
          and organization_id > m.organization_id
        order by organization_id limit 1) n)
    select m.organization_id, c.count from notified m, lateral (
      select count(*)::int4 as count from (
        select 1 from delivery d
        where d.network_id = ${network_id} and d.organization_id = m.organization_id
          and d.block_number > ${above}
        order by d.block_number limit ${limit}) limited) c
    where c.count > 0`.execute(trx)
  return rows
}

/** Locks the webhooks whose notifications are retracted, and those that subscribe to some events. */
export const lockRetractedWebhooks = async (
  trx: Db,
  removed: Removed,
  events: readonly WalletEvent[],
): Promise<void> =>
  await lockWebhooks(trx, sql`delivery where ${ofRemoved(removed)}`, {
    network_id: removed.network_id,
    events,
  })

/** Deletes notifications that wait and are of removed blocks, so many at most. Returns how many. */
export const deleteWaitingAbove = async (
  trx: Db,
  removed: Removed,
  limit: number | null = null,
): Promise<number> => {
  // As an array, so that the planner looks up ids instead of joining.
  const { numAffectedRows } = await sql`
    delete from delivery where webhook_history_id = any(array(
      select webhook_history_id from delivery
      where ${ofRemoved(removed)} and due_block is not null limit ${limit}::int8))`.execute(trx)
  return Number(numAffectedRows ?? 0n)
}

/** How many notifications a page has at most, and how many bytes their bodies have together; one alone may have more. */
export type PageBounds = { rows: number; bytes: number }

// As many of the notifications `ids` of `page` as have so many bytes, and the first one that exceeds them. Row by row, because
// a length is known only after the body is read. Stored lengths bound nothing: equal transfers are compressed to a hundredth.
const takenWithin = (bytes: number) => {
  const lengthOf = (id: RawBuilder<unknown>) => sql`
    lateral (select octet_length(data::text)::int8 as bytes from delivery
      where webhook_history_id = ${id} limit 1) l`
  return sql`
    taken (place, webhook_history_id, until) as (
      select 1, p.ids[1], l.bytes from page p, ${lengthOf(sql`p.ids[1]`)}
      union all
      select t.place + 1, p.ids[t.place + 1], t.until + l.bytes
      from taken t, page p, ${lengthOf(sql`p.ids[t.place + 1]`)}
      where t.until <= ${bytes}::int8)`
}

/** The first notifications that were sent of removed blocks, from the oldest block on, and whether there may be more. */
export const listSentAbove = async (
  trx: Db,
  removed: Removed,
  { rows: limit, bytes }: PageBounds,
): Promise<{ rows: DeliveryRow[]; isMore: boolean }> => {
  const { rows } = await sql<DeliveryRow & { listed: number }>`
    with recursive page as materialized (
      select array_agg(webhook_history_id order by block_number, webhook_history_id) as ids from (
        select webhook_history_id, block_number from delivery
        where ${ofRemoved(removed)} and due_block is null
        order by block_number, webhook_history_id limit ${limit}) first),
    ${takenWithin(bytes)}
    select d.*, cardinality(p.ids) as listed from taken t, page p, lateral (
      select * from delivery where webhook_history_id = t.webhook_history_id limit 1) d
    where t.place = 1 or t.until <= ${bytes}::int8
    order by t.place`.execute(trx)
  const listed = rows[0]?.listed ?? 0
  return {
    rows: rows.map(({ listed: _, ...row }) => row),
    isMore: listed === limit || rows.length < listed,
  }
}

// No body is shorter: more of them than this have too many bytes in any case.
const shortestBody = 256

/**
 * Which of the organizations have bodies that exceed so many bytes together with those of the organizations that have less: what
 * was sent to all others is within the bound.
 */
export const findBeyondBytes = async (
  trx: Db,
  removed: Removed,
  bytes: number,
): Promise<Set<string>> => {
  if (removed.organization_ids.length === 0) return new Set()
  const { rows } = await sql<{ organization_id: string }>`
    with recursive sent as materialized (
      select webhook_history_id, organization_id,
        sum(pg_column_size(data)) over (partition by organization_id) as stored
      from delivery where ${ofRemoved(removed)} and due_block is null),
    page as materialized (
      select array_agg(webhook_history_id order by stored, organization_id) as ids from (
        select * from sent order by stored, organization_id
        limit ${Math.ceil(bytes / shortestBody)}) smallest),
    ${takenWithin(bytes)}
    select s.organization_id
    from sent s left join taken t
      on t.webhook_history_id = s.webhook_history_id and t.until <= ${bytes}::int8
    group by s.organization_id
    having count(t.webhook_history_id) < count(*)`.execute(trx)
  return new Set(rows.map(({ organization_id }) => organization_id))
}

/**
 * Detaches notifications from their blocks, which were removed: neither the next reorganization nor the
 * next generation counts them.
 */
export const detachDeliveries = async (trx: Db, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return
  await sql`
    update delivery set block_number = null
    where webhook_history_id = any(${ids as string[]}::uuid[])`.execute(trx)
}

/** Which of these notifications exist. */
export const findExisting = async (trx: Db, ids: readonly string[]): Promise<Set<string>> => {
  const { rows } = await sql<{ webhook_history_id: string }>`
    select webhook_history_id from delivery
    where webhook_history_id = any(${ids as string[]}::uuid[])`.execute(trx)
  return new Set(rows.map(({ webhook_history_id }) => webhook_history_id))
}
