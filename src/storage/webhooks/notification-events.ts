import { sql } from 'kysely'
import type { WebhookEvent } from '../../contract/records/states.ts'
import { bulkRows } from '../pg/bulk.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { webhookTables } from './tables.ts'

/** What all webhooks of an organization are to be notified of, and are not yet. */
export type NotificationEvent = RowOf<typeof webhookTables.notification_event>

/** An event before it has its number. */
export type NewEvent = Omit<NotificationEvent, 'event_number' | 'after_webhook_id'>

/** A webhook as expanding events needs it. */
export type EventWebhook = {
  event_number: number
  webhook_id: string
  confirmation: number
  events: WebhookEvent[] | null
  earlier_events: EarlierEvents | null
}

/** What a webhook notified of, for events below a number and state changes before a time; oldest first. */
export type EarlierEvents = {
  until: number
  until_time?: string
  events: WebhookEvent[] | null
}[]

/** Stores events in their order; each organization numbers its own. */
export const insertEvents = async (trx: Db, events: readonly NewEvent[]): Promise<void> => {
  if (events.length === 0) return
  const network_id = events[0]!.network_id
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
    insert into notification_event (network_id, organization_id, event_number, wallet_ids, event_key,
      notification_type, data, transaction_hash, block_number, create_time)
    select r.network_id, r.organization_id, t.next_event - c.count + r.place, r.wallet_ids,
      r.event_key, r.notification_type, r.data, r.transaction_hash, r.block_number, r.create_time
    from json_to_recordset(${bulkRows(numbered)}::text::json)
      r (network_id int2, organization_id uuid, place int8, wallet_ids uuid[], event_key text[],
        notification_type text, data jsonb, transaction_hash bytea, block_number int8,
        create_time timestamptz)
    join turn t on t.organization_id = r.organization_id
    join counted c on c.organization_id = r.organization_id`.execute(trx)
}

/** The organizations that have events on a chain, those with the oldest block first, so many at most. */
export const listEventOrganizations = async (
  db: Db,
  network_id: number,
  limit: number,
): Promise<string[]> => {
  const { rows } = await sql<{ organization_id: string }>`
    with recursive first as (
      (select organization_id, block_number from notification_event
        where network_id = ${network_id} order by organization_id, event_number limit 1)
      union all
      select n.organization_id, n.block_number from first f, lateral (
        select organization_id, block_number from notification_event
        where network_id = ${network_id} and organization_id > f.organization_id
        order by organization_id, event_number limit 1) n)
    select organization_id from first
    order by block_number, organization_id limit ${limit}`.execute(db)
  return rows.map(({ organization_id }) => organization_id)
}

/** Whether events of a chain are not expanded yet. */
export const hasEvents = async (db: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from notification_event where network_id = ${network_id} limit 1`.execute(db)
  return rows.length > 0
}

/** Which of these organizations have events on a chain that are not expanded yet. */
export const findPendingOrganizations = async (
  trx: Db,
  network_id: number,
  organization_ids: readonly string[],
): Promise<ReadonlySet<string>> => {
  const { rows } = await sql<{ organization_id: string }>`
    select o.organization_id from unnest(${organization_ids as string[]}::uuid[]) o (organization_id)
    where exists (
      select from notification_event e
      where e.network_id = ${network_id} and e.organization_id = o.organization_id)`.execute(trx)
  return new Set(rows.map(({ organization_id }) => organization_id))
}

/** The first events of an organization, in their order. */
export const listEvents = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  limit: number,
): Promise<NotificationEvent[]> => {
  const { rows } = await sql<NotificationEvent>`
    select * from notification_event
    where network_id = ${network_id} and organization_id = ${organization_id}
    order by event_number limit ${limit}`.execute(trx)
  return rows
}

/** The next webhooks of some events, in the order of their ids, so many of each event at most. */
export const listEventWebhooks = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  event_numbers: readonly number[],
  limit: number,
): Promise<EventWebhook[]> => {
  const ofEvent = sql`
    network_id = e.network_id and organization_id = e.organization_id
    and coalesce(first_event, 0) <= e.event_number
    and (e.after_webhook_id is null or webhook_id > e.after_webhook_id)`
  // In two parts, each one look into the index: an organization may have a webhook for every wallet.
  const { rows } = await sql<EventWebhook>`
    select e.event_number, w.webhook_id, w.confirmation, w.events, w.earlier_events
    from notification_event e, lateral (
      select * from (
        (select * from webhook where ${ofEvent} and wallet_id is null
          order by webhook_id limit ${limit})
        union all
        (select * from webhook where ${ofEvent} and wallet_id = any(e.wallet_ids)
          order by webhook_id limit ${limit})) both_parts
      order by webhook_id limit ${limit}) w
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

/** Drops the events of blocks above a number. */
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
