import { sql } from 'kysely'
import { bulkRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import { type EventWebhook, type StateEvent, webhooksWhere } from './event-queues.ts'

/** A state change before it has its number. */
export type NewStateEvent = Omit<StateEvent, 'event_number' | 'after_webhook_id'>

// Of one statement. A record may have 256 KiB of data, and the text of a statement is bounded.
const eventsAtOnce = 100

/**
 * Stores state changes in their order. The managed transactions must be locked: then the changes of each
 * of them have growing numbers, without a counter that other transactions would wait for.
 */
export const insertStateEvents = async (
  trx: Db,
  events: readonly NewStateEvent[],
): Promise<void> => {
  for (let at = 0; at < events.length; at += eventsAtOnce)
    await insertSome(trx, events.slice(at, at + eventsAtOnce))
}

const insertSome = async (trx: Db, events: readonly NewStateEvent[]): Promise<void> => {
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

/** The next webhooks of a state change that were registered before it, in the order of their ids. */
export const listStateWebhooks = async (
  trx: Db,
  event: StateEvent,
  limit: number,
): Promise<EventWebhook[]> => {
  const { network_id, organization_id, wallet_id, after_webhook_id, create_time } = event
  const webhooks = webhooksWhere(
    {
      network_id: sql`${network_id}::int2`,
      organization_id: sql`${organization_id}::uuid`,
      wallet_ids: sql`array[${wallet_id}::uuid]`,
      after_webhook_id: sql`${after_webhook_id}::uuid`,
      // Webhooks that were registered after the change do not get it.
      condition: sql`create_time <= ${create_time}`,
    },
    limit,
  )
  const { rows } = await sql<EventWebhook>`
    select webhook_id, confirmation, events, earlier_events from (${webhooks}) w
    order by webhook_id`.execute(trx)
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
