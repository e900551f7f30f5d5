// The notifications of removed blocks. Those that wait are deleted. Those that were sent are listed, so that the caller
// follows them with one with REORGED, and are detached from the block: its return makes a new generation.

import { sql } from 'kysely'
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

/** The first notifications that were sent of removed blocks, from the oldest block on. */
export const listSentAbove = async (
  trx: Db,
  removed: Removed,
  limit: number,
): Promise<DeliveryRow[]> => {
  const { rows } = await sql<DeliveryRow>`
    select * from delivery where ${ofRemoved(removed)} and due_block is null
    order by block_number, webhook_history_id limit ${limit}`.execute(trx)
  return rows
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
