// One row per transaction and organization instead of one per webhook. It is used where an organization has many webhooks
// or still has events that wait: the transaction of the block stays short, and notifications keep their order.

import { sql } from 'kysely'
import { bulkRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import {
  type EventWebhook,
  type ReorganizationEvent,
  type TransfersEvent,
  webhooksWhere,
} from './event-queues.ts'

/** A transaction before its event has a number. */
export type NewTransfersEvent = Omit<TransfersEvent, 'event_number' | 'after_webhook_id'>

/** An event before it has its number. */
export type NewEvent = NewTransfersEvent | Omit<ReorganizationEvent, 'event_number'>

/** Stores events in their order; each organization numbers its own. */
export const insertEvents = async (trx: Db, events: readonly NewEvent[]): Promise<void> => {
  if (events.length === 0) return
  const network_id = events[0]!.network_id
  // Numbers without holes for each organization: `place` counts within this batch, the turn within
  // all.
  const counts = new Map<string, number>()
  const numbered = events.map((event) => {
    const place = counts.get(event.organization_id) ?? 0
    counts.set(event.organization_id, place + 1)
    return { ...event, place }
  })
  const turns = [...counts].map(([organization_id, count]) => ({ organization_id, count }))
  // In one order: two that store history beside each other wait, but never for each other.
  await sql`
    with turn as (
      insert into notification_turn (network_id, organization_id, next_event)
      select ${network_id}, organization_id, 1 + count
      from json_to_recordset(${bulkRows(turns)}::text::json) t (organization_id uuid, count int8)
      order by organization_id
      on conflict (network_id, organization_id) do update
        set next_event = notification_turn.next_event + excluded.next_event - 1
      returning organization_id, next_event),
    counted as (
      select organization_id, count from json_to_recordset(${bulkRows(turns)}::text::json)
        t (organization_id uuid, count int8))
    insert into notification_event (network_id, organization_id, event_number, event_kind,
      block_number, wallet_ids, event_key, notification_type, data, transaction_hash, create_time)
    select r.network_id, r.organization_id, t.next_event - c.count + r.place, r.event_kind,
      r.block_number, r.wallet_ids, r.event_key, r.notification_type, r.data, r.transaction_hash,
      r.create_time
    from json_to_recordset(${bulkRows(numbered)}::text::json)
      r (network_id int2, organization_id uuid, place int8, event_kind text, block_number int8,
        wallet_ids uuid[], event_key text[], notification_type text, data jsonb,
        transaction_hash bytea, create_time timestamptz)
    join turn t on t.organization_id = r.organization_id
    join counted c on c.organization_id = r.organization_id`.execute(trx)
}

/** The next webhooks of some events, in the order of their ids, so many of each event at most. */
export const listEventWebhooks = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  event_numbers: readonly number[],
  limit: number,
): Promise<(EventWebhook & { event_number: number })[]> => {
  const webhooks = webhooksWhere(
    {
      network_id: sql`e.network_id`,
      organization_id: sql`e.organization_id`,
      wallet_ids: sql`e.wallet_ids`,
      after_webhook_id: sql`e.after_webhook_id`,
      condition: sql`coalesce(first_event, 0) <= e.event_number`,
    },
    limit,
  )
  const { rows } = await sql<EventWebhook & { event_number: number }>`
    select e.event_number, w.webhook_id, w.confirmation, w.events, w.earlier_events
    from notification_event e, lateral (${webhooks}) w
    where e.network_id = ${network_id} and e.organization_id = ${organization_id}
      and e.event_number = any(${event_numbers as number[]}::int8[])
    order by e.event_number, w.webhook_id`.execute(trx)
  return rows
}

/** Removes the events whose webhooks all have their notifications, and notes how far the next one is. */
export const advanceEvents = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  { done, partly }: { done: readonly number[]; partly?: EventProgress | undefined },
): Promise<void> => {
  // In the transaction that wrote the notifications, so that neither is there without the other.
  if (done.length > 0)
    await sql`
      delete from notification_event
      where network_id = ${network_id} and organization_id = ${organization_id}
        and event_number = any(${done as number[]}::int8[])`.execute(trx)
  if (partly)
    await sql`
      update notification_event set after_webhook_id = ${partly.after_webhook_id}
      where network_id = ${network_id} and organization_id = ${organization_id}
        and event_number = ${partly.event_number}`.execute(trx)
}

/** The last webhook of an event that has its notification. */
export type EventProgress = { event_number: number; after_webhook_id: string }

/** Drops the events of blocks above a number, and the reorganizations of those blocks only. */
export const deleteEventsAbove = async (
  trx: Db,
  network_id: number,
  number: number,
): Promise<void> => {
  await sql`
    delete from notification_event
    where network_id = ${network_id} and block_number > ${number}`.execute(trx)
}

/** The number of the next event of an organization, and whether there are events that are not expanded yet. */
export const findTurn = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
): Promise<{ next_event: number; isPending: boolean }> => {
  const { rows } = await sql<{ next_event: number; pending: boolean }>`
    select next_event, exists (
      select from notification_event e
      where e.network_id = t.network_id and e.organization_id = t.organization_id) as pending
    from notification_turn t
    where network_id = ${network_id} and organization_id = ${organization_id}`.execute(trx)
  const [turn] = rows
  return { next_event: turn?.next_event ?? 1, isPending: turn?.pending ?? false }
}
