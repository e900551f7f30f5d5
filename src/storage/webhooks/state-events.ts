import { sql } from 'kysely'
import { bulkRows } from '../pg/bulk.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { EventWebhook } from './notification-events.ts'
import type { webhookTables } from './tables.ts'

/** A state change that the webhooks of an organization are not notified of yet. */
export type StateEvent = RowOf<typeof webhookTables.state_event>

/** A state change before it has its number. */
export type NewStateEvent = Omit<StateEvent, 'event_number' | 'after_webhook_id'>

/** A webhook as expanding state changes needs it. */
export type StateWebhook = Pick<EventWebhook, 'webhook_id' | 'events' | 'earlier_events'>

/**
 * Stores state changes in their order. The managed transactions must be locked: then the changes of each
 * of them have growing numbers, without a counter that other transactions would wait for.
 */
export const insertStateEvents = async (
  trx: Db,
  events: readonly NewStateEvent[],
): Promise<void> => {
  if (events.length === 0) return
  const network_id = events[0]!.network_id
  const rows = events.map((event, place) => ({ ...event, place }))
  // The time of the database, because processes can differ; never below what waits already.
  await sql`
    with base as (
      select o.organization_id, greatest(
        (extract(epoch from clock_timestamp()) * 1000000)::int8,
        (select max(event_number) + 1 from state_event e
          where e.network_id = ${network_id} and e.organization_id = o.organization_id)) as first
      from unnest(${[...new Set(events.map(({ organization_id }) => organization_id))]}::uuid[])
        o (organization_id))
    insert into state_event (network_id, organization_id, event_number, transaction_id, wallet_id,
      transaction_hash, data, create_time)
    select r.network_id, r.organization_id, b.first + r.place, r.transaction_id, r.wallet_id,
      r.transaction_hash, r.data, r.create_time
    from json_to_recordset(${bulkRows(rows)}::text::json)
      r (network_id int2, organization_id uuid, place int8, transaction_id text, wallet_id uuid,
        transaction_hash bytea, data jsonb, create_time timestamptz)
    join base b on b.organization_id = r.organization_id`.execute(trx)
}

/** Whether state changes of a network are not expanded yet. */
export const hasStateEvents = async (db: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from state_event where network_id = ${network_id} limit 1`.execute(db)
  return rows.length > 0
}

/** Which of these organizations have state changes on a network that are not expanded yet. */
export const findPendingStates = async (
  trx: Db,
  network_id: number,
  organization_ids: readonly string[],
): Promise<ReadonlySet<string>> => {
  const { rows } = await sql<{ organization_id: string }>`
    select o.organization_id from unnest(${organization_ids as string[]}::uuid[]) o (organization_id)
    where exists (
      select from state_event e
      where e.network_id = ${network_id} and e.organization_id = o.organization_id)`.execute(trx)
  return new Set(rows.map(({ organization_id }) => organization_id))
}

/** The organizations that have state changes on a network, the oldest change first, so many at most. */
export const listStateOrganizations = async (
  db: Db,
  network_id: number,
  limit: number,
): Promise<string[]> => {
  const { rows } = await sql<{ organization_id: string }>`
    with recursive first as (
      (select organization_id, event_number from state_event
        where network_id = ${network_id} order by organization_id, event_number limit 1)
      union all
      select n.organization_id, n.event_number from first f, lateral (
        select organization_id, event_number from state_event
        where network_id = ${network_id} and organization_id > f.organization_id
        order by organization_id, event_number limit 1) n)
    select organization_id from first
    order by event_number, organization_id limit ${limit}`.execute(db)
  return rows.map(({ organization_id }) => organization_id)
}

/** The first state changes of an organization, in their order. */
export const listStateEvents = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  limit: number,
): Promise<StateEvent[]> => {
  const { rows } = await sql<StateEvent>`
    select * from state_event
    where network_id = ${network_id} and organization_id = ${organization_id}
    order by event_number, transaction_id limit ${limit}`.execute(trx)
  return rows
}

/** The next webhooks of a state change that were registered before it, in the order of their ids. */
export const listStateWebhooks = async (
  trx: Db,
  event: StateEvent,
  limit: number,
): Promise<StateWebhook[]> => {
  const { network_id, organization_id, wallet_id, after_webhook_id, create_time } = event
  const ofEvent = sql`
    network_id = ${network_id} and organization_id = ${organization_id}
    and create_time <= ${create_time}
    and (${after_webhook_id}::uuid is null or webhook_id > ${after_webhook_id}::uuid)`
  // In two parts, each one look into the index: an organization may have a webhook for every wallet.
  const { rows } = await sql<StateWebhook>`
    select webhook_id, events, earlier_events from (
      (select * from webhook where ${ofEvent} and wallet_id is null
        order by webhook_id limit ${limit})
      union all
      (select * from webhook where ${ofEvent} and wallet_id = ${wallet_id}
        order by webhook_id limit ${limit})) both_parts
    order by webhook_id limit ${limit}`.execute(trx)
  return rows
}

const keyOf = ({ network_id, organization_id, event_number, transaction_id }: StateEvent) => sql`
  network_id = ${network_id} and organization_id = ${organization_id}
  and event_number = ${event_number} and transaction_id = ${transaction_id}`

/** Removes a state change whose webhooks all have their notifications. */
export const deleteStateEvent = async (trx: Db, event: StateEvent): Promise<void> => {
  await sql`delete from state_event where ${keyOf(event)}`.execute(trx)
}

/** Notes the last webhook that has its notification of a state change. */
export const advanceStateEvent = async (
  trx: Db,
  event: StateEvent,
  after_webhook_id: string,
): Promise<void> => {
  await sql`
    update state_event set after_webhook_id = ${after_webhook_id} where ${keyOf(event)}`.execute(
    trx,
  )
}
