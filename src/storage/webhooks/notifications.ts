// Notifications from their first row to the queue. A number (`sequence`) is taken under the lock of the webhook, which is
// held until the commit: a rollback leaves no hole, and none is seen before a smaller one. Only a stream that resumes
// leaves out one number, on purpose (`streams.ts`).

import { type RawBuilder, sql } from 'kysely'
import type { WebhookEvent } from '../../contract/records/states.ts'
import { hashId } from '../../lib/hash-id.ts'
import { type BulkRow, bulkRows, insertRows } from '../pg/bulk.ts'
import { notifyChange } from '../pg/changes.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import { prepared } from '../pg/prepared.ts'
import type { webhookTables } from './tables.ts'

/** A stored notification. */
export type DeliveryRow = RowOf<typeof webhookTables.delivery>

/** The topic under which couriers are woken. */
export const courierTopic = 'courier'

/** What the tracker needs of a webhook. */
export type WatchingWebhook = {
  webhook_id: string
  organization_id: string
  wallet_id: string | null
  confirmation: number
}

/** A notification that is due, with its body. */
export type DueDelivery = Pick<DeliveryRow, 'webhook_history_id' | 'webhook_id'> & { data: object }

/** A notification that waits for nothing. */
export type NewNotification = Pick<
  DeliveryRow,
  'organization_id' | 'network_id' | 'webhook_id' | 'notification_type'
> & { data: object; transaction_hash?: Buffer | null }

/** Wakes the couriers when the transaction commits; once in it, for NOTIFY takes a lock of the whole server. */
export const wakeCouriers = async (trx: Db): Promise<void> =>
  await notifyChange(trx, { kind: 'wake', topic: courierTopic })

/** Queues notifications that wait for nothing, and gives their ids; those of a removed webhook are left out. */
export const queueNotifications = async (
  trx: Db,
  notifications: readonly NewNotification[],
  now: Date,
): Promise<string[]> => {
  if (notifications.length === 0) return []
  // Locks the webhooks, in the order of their ids. Nothing else may be locked after that.
  const numbered = await numberDeliveries(trx, notifications)
  const rows = numbered.map((row) => ({
    ...row,
    // The number makes it one of a kind.
    webhook_history_id: hashId('sequence', row.webhook_id, row.sequence),
  }))
  await sql`
    with notified as (
      insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
        notification_type, data, sequence, transaction_hash, create_time)
      select webhook_history_id, organization_id, network_id, webhook_id, notification_type, data,
        sequence, transaction_hash, ${now}
      from json_to_recordset(${bulkRows(rows)}::text::json)
        r (webhook_history_id uuid, organization_id uuid, network_id int2, webhook_id uuid,
          notification_type text, data jsonb, sequence int8, transaction_hash bytea)
      returning webhook_history_id, webhook_id, sequence)
    ${enqueue(now)}`.execute(trx)
  if (rows.length > 0) await wakeCouriers(trx)
  return rows.map(({ webhook_history_id }) => webhook_history_id)
}

// Read under the lock that numbering took: the webhook cannot be enabled or disabled meanwhile.
const enqueue = (now: Date) => sql`
  insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence,
    webhook_status, next_attempt_time, retry_step)
  select notified.webhook_history_id, w.organization_id, notified.webhook_id, notified.sequence,
    case w.webhook_state when 'WEBHOOK_STATE_ENABLED'
      then 'WEBHOOK_STATUS_PENDING' else 'WEBHOOK_STATUS_ON_HOLD' end,
    case w.webhook_state when 'WEBHOOK_STATE_ENABLED' then ${now}::timestamptz end, 0
  from notified join webhook w on w.webhook_id = notified.webhook_id
  -- Clients read the notifications of a stream themselves.
  where w.sink is null`

/** Gives notifications their numbers, in the order in which they come; locks their webhooks. */
export const numberDeliveries = async <row extends { webhook_id: string; data: object }>(
  trx: Db,
  rows: readonly row[],
): Promise<(row & { sequence: number })[]> => {
  const counts = new Map<string, number>()
  for (const { webhook_id } of rows) counts.set(webhook_id, (counts.get(webhook_id) ?? 0) + 1)
  const next = await takeSequences(trx, counts)
  return rows
    .filter(({ webhook_id }) => next.has(webhook_id))
    .map((row) => {
      const sequence = next.get(row.webhook_id)!
      next.set(row.webhook_id, sequence + 1)
      return { ...row, sequence, data: { ...row.data, sequence } }
    })
}

/** What a notification may be about: something of one wallet. */
export type WalletEvent = { organization_id: string; wallet_id: string }

/**
 * Finds the webhooks that want some events: those of a wallet by its id, and those of all wallets by the id of their
 * organization. With a limit at most so many of each.
 */
export const findWebhooks = async (
  trx: Db,
  network_id: number,
  events: readonly WalletEvent[],
  kind: WebhookEvent,
  limit: number | null = null,
): Promise<(id: string) => readonly WatchingWebhook[]> => {
  const organizations = [...new Set(events.map(({ organization_id }) => organization_id))]
  const wallets = [...new Map(events.map((event) => [event.wallet_id, event])).values()]
  const wanted = sql`network_id = ${network_id} and (events is null or ${kind} = any(events))`
  // In two parts, each one look into the index: an organization may have a webhook for every wallet. The first part is ordered
  // by its wallet too, because to the planner `is null` is no constant: by the id alone it reads the webhooks of all tenants.
  const { rows } = await sql<WatchingWebhook>`${sql.raw(prepared)}
    select w.* from unnest(${organizations}::uuid[]) o (organization_id), lateral (
      select webhook_id, organization_id, wallet_id, confirmation from webhook
      where ${wanted} and organization_id = o.organization_id and wallet_id is null
      order by wallet_id, webhook_id limit ${limit}::int8) w
    union all
    select w.* from unnest(${wallets.map(({ organization_id }) => organization_id)}::uuid[],
        ${wallets.map(({ wallet_id }) => wallet_id)}::uuid[]) o (organization_id, wallet_id), lateral (
      select webhook_id, organization_id, wallet_id, confirmation from webhook
      where ${wanted} and organization_id = o.organization_id and wallet_id = o.wallet_id
      order by webhook_id limit ${limit}::int8) w`.execute(trx)
  // Both are UUIDs, so the keys cannot collide.
  const found = Map.groupBy(rows, (row) => row.wallet_id ?? row.organization_id)
  return (id) => found.get(id) ?? []
}

/** Stores notifications that wait for their block; those that are there stay as they are. */
export const insertWaiting = async (
  trx: Db,
  rows: readonly BulkRow<'delivery'>[],
): Promise<number> => await insertRows(trx, 'delivery', rows)

/** Lets waiting notifications wait for another block. */
export const postponeWaiting = async (
  trx: Db,
  waiting: readonly { webhook_history_id: string; due_block: number }[],
): Promise<void> => {
  if (waiting.length === 0) return
  await sql`
    update delivery d set due_block = r.due_block
    from json_to_recordset(${bulkRows(waiting)}::text::json) r (webhook_history_id uuid, due_block int8)
    where d.webhook_history_id = r.webhook_history_id`.execute(trx)
}

/** Takes numbers out of the webhooks' sequences and says the first one of each. */
const takeSequences = async (
  trx: Db,
  counts: ReadonlyMap<string, number>,
): Promise<Map<string, number>> => {
  const rows = [...counts].map(([webhook_id, count]) => ({ webhook_id, count }))
  // Locked in one order, so that two writers wait but never for each other. Not prepared: a plan of an empty table reads
  // all webhooks.
  const { rows: taken } = await sql<{ webhook_id: string; first: number }>`
    with taken as (
      select w.webhook_id, t.count from webhook w
      join json_to_recordset(${bulkRows(rows)}::text::json) t (webhook_id uuid, count int8)
        on t.webhook_id = w.webhook_id
      order by w.webhook_id for no key update of w)
    update webhook w set next_sequence = w.next_sequence + t.count from taken t
    where w.webhook_id = t.webhook_id
    returning w.webhook_id, w.next_sequence - t.count as first`.execute(trx)
  return new Map(taken.map(({ webhook_id, first }) => [webhook_id, first]))
}

/**
 * Makes waiting notifications real: they get number, body and time, and the courier finds them.
 * Gives the ids of those; a webhook that was removed meanwhile wants none.
 */
export const releaseWaiting = async (
  trx: Db,
  waiting: readonly DueDelivery[],
  now: Date,
): Promise<Set<string>> => {
  const due = await numberDeliveries(trx, waiting)
  if (due.length === 0) return new Set()
  await sql`
    with notified as (
      update delivery d set sequence = r.sequence, data = r.data, due_block = null,
        create_time = ${now}
      from json_to_recordset(${bulkRows(due)}::text::json)
        r (webhook_history_id uuid, sequence int8, data jsonb)
      where d.webhook_history_id = r.webhook_history_id
      returning d.webhook_history_id, d.webhook_id, d.sequence)
    ${enqueue(now)}`.execute(trx)
  return new Set(due.map(({ webhook_history_id }) => webhook_history_id))
}

/**
 * Locks the webhooks of some deliveries (the text after `from`) and those that subscribe to some events.
 * It locks all rows in one ordered statement to avoid deadlocks.
 */
export const lockWebhooks = async (
  trx: Db,
  deliveries: RawBuilder<unknown>,
  { network_id, events }: { network_id: number; events: readonly WalletEvent[] },
): Promise<void> => {
  const organizations = [...new Set(events.map(({ organization_id }) => organization_id))]
  const wallets = [...new Set(events.map(({ wallet_id }) => wallet_id))]
  await sql`
    select count(*) from (
      select 1 from webhook where webhook_id in (
        select webhook_id from ${deliveries}
        union all
        select webhook_id from webhook
        where network_id = ${network_id} and organization_id = any(${organizations}::uuid[])
          and (wallet_id is null or wallet_id = any(${wallets}::uuid[])))
      order by webhook_id for no key update) w`.execute(trx)
}

/** Drops waiting notifications by their ids. */
export const deleteWaiting = async (trx: Db, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return
  await sql`
    delete from delivery where webhook_history_id = any(${ids as string[]}::uuid[])
      and due_block is not null`.execute(trx)
}

// Citus recovers a transaction every minute that a machine has prepared and whose end it has not heard of.
const recoveredMs = 600_000

/**
 * Drops waiting notifications whose transfers are not there. Where transfers are distributed, those of a commit that a machine has
 * not finished become visible later: a young notification waits for the next block.
 */
export const deleteWithoutTransfers = async (
  trx: Db,
  ids: readonly string[],
  { head, now }: { head: number; now: Date },
): Promise<void> => {
  if (ids.length === 0) return
  const { rows } = await sql<{ is_distributed: boolean }>`
    select to_regclass('pg_dist_partition') is not null as is_distributed`.execute(trx)
  if (rows[0]!.is_distributed)
    await sql`
      update delivery set due_block = ${head}::int8 + 1
      where webhook_history_id = any(${ids as string[]}::uuid[]) and due_block is not null
        and create_time > ${new Date(now.getTime() - recoveredMs)}`.execute(trx)
  await sql`
    delete from delivery where webhook_history_id = any(${ids as string[]}::uuid[])
      and due_block <= ${head}`.execute(trx)
}

/** Which of these notifications a reorganization has taken back. */
export const findTakenBack = async (trx: Db, ids: readonly string[]): Promise<Set<string>> => {
  const { rows } = await sql<{ webhook_history_id: string }>`
    select webhook_history_id from delivery
    where webhook_history_id = any(${ids as string[]}::uuid[]) and block_number is null`.execute(
    trx,
  )
  return new Set(rows.map(({ webhook_history_id }) => webhook_history_id))
}
