// Removal of old history. It works in batches and skips what is locked: retention may wait, a delivery may not.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { DeliveryPosition } from './deliveries.ts'

/** The organizations and chains whose oldest notification is older than a time. */
export const listOldHistories = async (db: Db, before: Date): Promise<WalletScope[]> => {
  // One look into the index for each, however long its history.
  const { rows } = await sql<WalletScope>`
    with recursive oldest as (
      (select organization_id, network_id, create_time from delivery
        where sequence is not null order by organization_id, network_id, create_time limit 1)
      union all
      select n.* from oldest o, lateral (
        select organization_id, network_id, create_time from delivery
        where sequence is not null
          and (organization_id, network_id) > (o.organization_id, o.network_id)
        order by organization_id, network_id, create_time limit 1) n)
    select organization_id, network_id from oldest where create_time < ${before}`.execute(db)
  return rows
}

/** The position from which removal continues, and what was removed. */
export type Removed = { count: number; next: DeliveryPosition | undefined }

/**
 * Removes notifications that came to an end before a time, with their attempts, a batch at once.
 * What is still to be sent or on hold stays however old it is, and so does what was tried since.
 */
export const removeOldHistory = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  { before, after, limit }: { before: Date; after: DeliveryPosition | undefined; limit: number },
): Promise<Removed> =>
  // In one transaction: the rows stay locked from the choice to the removal.
  await db.transaction().execute(async (trx) => {
    const { rows } = await sql<DeliveryPosition & { last_time: Date | null }>`
      select webhook_history_id, create_time, (
        select attempt_time from delivery_attempt a
        where a.webhook_id = d.webhook_id and a.sequence = d.sequence
        order by attempt desc limit 1) as last_time
      from delivery d
      where organization_id = ${organization_id} and network_id = ${network_id}
        and sequence is not null and create_time < ${before}
        -- Not what a sink has yet to publish. One look-up for each: an anti-join would read all sinks.
        and coalesce((
          select s.position from sink s where s.webhook_id = d.webhook_id), d.sequence) >= d.sequence
        ${
          after
            ? sql`and (create_time, webhook_history_id)
              > (${after.create_time}::timestamptz, ${after.webhook_history_id}::uuid)`
            : sql``
        }
      order by create_time, webhook_history_id limit ${limit}
      for update skip locked`.execute(trx)
    const ids = rows
      .filter(({ last_time }) => last_time === null || last_time < before)
      .map(({ webhook_history_id }) => webhook_history_id)
    // A second statement, which sees whatever was asked for again before the lock was there. What is
    // being asked for again right now is left for another time.
    const { rows: gone } = await sql<{ webhook_id: string; sequence: number }>`
      with failed as (
        delete from delivery_queue where webhook_history_id in (
          select webhook_history_id from delivery_queue
          where webhook_history_id = any(${ids}::uuid[])
            and webhook_status = 'WEBHOOK_STATUS_FAILED' for update skip locked)
        returning webhook_history_id),
      gone as (
        delete from delivery d where webhook_history_id = any(${ids}::uuid[])
          and (webhook_history_id in (select webhook_history_id from failed) or not exists (
            select 1 from delivery_queue q where q.webhook_history_id = d.webhook_history_id))
        returning webhook_id, sequence)
      select webhook_id, sequence from gone`.execute(trx)
    // By webhook, because the key of attempts begins with it.
    for (const [webhook_id, mine] of Map.groupBy(gone, (row) => row.webhook_id))
      await sql`
        delete from delivery_attempt where webhook_id = ${webhook_id}
          and sequence = any(${mine.map(({ sequence }) => sequence)}::int8[])`.execute(trx)
    return { count: gone.length, next: rows.length < limit ? undefined : rows.at(-1) }
  })
