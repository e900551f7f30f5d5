// Events that stand for many notifications until a worker writes those (`workers/webhooks/fan-out.ts` and
// `state-fan-out.ts`). There are two tables, one of transactions and reorganizations, one of state changes; in both each
// organization has its own queue.

import { type RawBuilder, sql } from 'kysely'
import type { WebhookEvent } from '../../contract/records/states.ts'
import { lowestId } from '../../lib/ids.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { webhookTables } from './tables.ts'

type Row = RowOf<typeof webhookTables.notification_event>

/** The transaction that the webhooks of an organization are to be notified of. */
export type TransfersEvent = {
  [name in keyof Row]: name extends 'after_webhook_id' ? Row[name] : NonNullable<Row[name]>
} & { event_kind: 'TRANSFERS' }

/** Blocks that were removed, from `block_number` on: what was notified of them is to be retracted. */
export type ReorganizationEvent = Pick<
  Row,
  'network_id' | 'organization_id' | 'event_number' | 'block_number' | 'create_time'
> & { event_kind: 'REORGANIZATION' }

/** What the webhooks of an organization are to be notified of, and are not yet. */
type NotificationEvent = TransfersEvent | ReorganizationEvent

/** A state change that the webhooks of an organization are not notified of yet. */
export type StateEvent = RowOf<typeof webhookTables.state_event>

/** The tables of events whose notifications are not written yet. Each organization has a queue in each of them. */
type EventRows = { notification_event: NotificationEvent; state_event: StateEvent }

/** The name of a table of events. */
type EventTable = keyof EventRows

/** A webhook as expanding events needs it. */
export type EventWebhook = {
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

// The numbers of state changes can be equal.
const orders = {
  notification_event: sql`event_number`,
  state_event: sql`event_number, transaction_id`,
}

/** Whether events of a network are not expanded yet. */
export const hasEvents = async (
  db: Db,
  table: EventTable,
  network_id: number,
): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from ${sql.table(table)} where network_id = ${network_id} limit 1`.execute(db)
  return rows.length > 0
}

/** Which of these organizations have events on a network that are not expanded yet. */
export const findPendingOrganizations = async (
  trx: Db,
  table: EventTable,
  network_id: number,
  organization_ids: readonly string[],
): Promise<ReadonlySet<string>> => {
  const { rows } = await sql<{ organization_id: string }>`
    select o.organization_id from unnest(${organization_ids as string[]}::uuid[]) o (organization_id)
    where exists (
      select from ${sql.table(table)} e
      where e.network_id = ${network_id} and e.organization_id = o.organization_id)`.execute(trx)
  return new Set(rows.map(({ organization_id }) => organization_id))
}

/** The organizations that have events on a network, the oldest first event first, so many at most. */
export const listEventOrganizations = async (
  db: Db,
  table: EventTable,
  network_id: number,
  limit: number,
): Promise<string[]> => {
  // One index look-up per organization, however many events it has.
  const first = (after: RawBuilder<unknown>) => sql`
    select organization_id, create_time from ${sql.table(table)}
    where network_id = ${network_id} ${after}
    order by organization_id, event_number limit 1`
  const { rows } = await sql<{ organization_id: string }>`
    with recursive first as (
      (${first(sql``)})
      union all
      select n.organization_id, n.create_time from first f, lateral (
        ${first(sql`and organization_id > f.organization_id`)}) n)
    select organization_id from first
    order by create_time, organization_id limit ${limit}`.execute(db)
  return rows.map(({ organization_id }) => organization_id)
}

/** The first events of an organization, in their order. */
export const listEvents = async <table extends EventTable>(
  trx: Db,
  table: table,
  { organization_id, network_id }: WalletScope,
  limit: number,
): Promise<EventRows[table][]> => {
  const { rows } = await sql<EventRows[table]>`
    select * from ${sql.table(table)}
    where network_id = ${network_id} and organization_id = ${organization_id}
    order by ${orders[table]} limit ${limit}`.execute(trx)
  return rows
}

/** The webhooks that may be notified of an event; as SQL, because the columns may be those of a table of events. */
type EventWebhooks = {
  network_id: RawBuilder<unknown>
  organization_id: RawBuilder<unknown>
  wallet_ids: RawBuilder<unknown>
  /** Those after this one; null for the first ones. */
  after_webhook_id: RawBuilder<unknown>
  condition: RawBuilder<unknown>
}

/**
 * A query for the webhooks of all wallets and of some wallets, in the order of their ids. It reads as many of each wallet, and of
 * all wallets, as it returns: an organization may have thousands of webhooks, and every page looks for the next ones. Each look
 * begins in the index at the last webhook before. With `after is null or webhook_id > after` no index served, and a page of 50 read
 * 21,587 webhooks, those of other tenants too.
 */
export const webhooksWhere = (
  { network_id, organization_id, wallet_ids, after_webhook_id, condition }: EventWebhooks,
  limit: number,
): RawBuilder<unknown> => {
  const next = (wallet: RawBuilder<unknown>) => sql`
    select * from webhook
    where network_id = ${network_id} and organization_id = ${organization_id} and wallet_id ${wallet}
      and webhook_id > coalesce(${after_webhook_id}, ${lowestId}::uuid) and ${condition}
    -- By the wallet too: to the planner \`is null\` is no constant, and it would read the webhooks of all tenants.
    order by wallet_id, webhook_id limit ${limit}`
  return sql`
    select * from (
      (${next(sql`is null`)})
      union all
      select n.* from unnest(${wallet_ids}) i (wallet_id), lateral (${next(sql`= i.wallet_id`)}) n) found
    order by webhook_id limit ${limit}`
}
