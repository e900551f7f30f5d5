// The history of deliveries for the API: lists, attempts and retries. The tables are large, so lists are pages by key along
// an index, and the state of a delivery is looked up per row of the page.

import { sql } from 'kysely'
import type { WebhookStatus } from '../../contract/records/states.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { DeliveryRow } from './notifications.ts'
import { storedBytesPerPage, streamIdOf } from './streams.ts'
import type { webhookTables } from './tables.ts'

/** A stored attempt. */
export type AttemptRow = RowOf<typeof webhookTables.delivery_attempt>

/** The position of the next page of histories. */
export type DeliveryPosition = Pick<DeliveryRow, 'create_time' | 'webhook_history_id'>

/** A notification with what became of it. */
export type HistoryRow = DeliveryRow & {
  webhook_status: WebhookStatus
  /** The number of attempts. */
  delivery_count: number
  /** The last one. */
  delivery_time: Date | null
}

type Filter = {
  webhook_id?: string | undefined
  transaction_hash?: Buffer | undefined
  /** Both ends included. */
  from_time?: Date | undefined
  to_time?: Date | undefined
  after?: DeliveryPosition | undefined
  limit: number
  now: Date
}

// A claim does not write the status: it is what the claim says it is.
const stateOf = (now: Date) => sql`
  coalesce(a.attempt, 0) as delivery_count, a.attempt_time as delivery_time,
  case when q.webhook_history_id is null then 'WEBHOOK_STATUS_COMPLETED'
    when q.webhook_status = 'WEBHOOK_STATUS_PENDING' and q.claim_expire_time > ${now}
      then 'WEBHOOK_STATUS_IN_PROGRESS'
    else q.webhook_status end as webhook_status`

// The newest attempt by an index look-up per row of the page; a join over all attempts would read
// the history.
const stateJoins = sql`
  left join delivery_queue q on q.webhook_history_id = d.webhook_history_id
  left join lateral (
    select attempt, attempt_time from delivery_attempt
    where webhook_id = d.webhook_id and sequence = d.sequence
    order by attempt desc limit 1) a on true`

/** The streams and sinks of an organization on a network, whose notifications have no history of deliveries. */
const listEndless = async (db: Db, scope: WalletScope): Promise<string[]> => {
  const { rows } = await sql<{ webhook_id: string }>`
    select webhook_id from sink
    where organization_id = ${scope.organization_id} and network_id = ${scope.network_id}`.execute(
    db,
  )
  return [streamIdOf(scope), ...rows.map(({ webhook_id }) => webhook_id)]
}

/**
 * How many notifications are looked at for a page. Behind thousands of the streams and sinks a page is short, or empty, and has
 * a token.
 */
export const listScan = 5_000

/** Notifications, and the position of the next page if there is one. */
export type DeliveryPage = { rows: HistoryRow[]; next: DeliveryPosition | undefined }

/**
 * One page of notifications that are more than waiting, newest first. It ends with the one at which their bodies are too large
 * together: a hundred of 1 MB would be one answer of 100 MB.
 */
export const listDeliveries = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  { webhook_id, transaction_hash, from_time, to_time, after, limit, now }: Filter,
): Promise<DeliveryPage> => {
  // Asked for first: with a sub-select the planner expects few rows and reads the whole table.
  const endless = await listEndless(db, { organization_id, network_id })
  // All of it would be looked at.
  if (webhook_id && endless.includes(webhook_id)) return { rows: [], next: undefined }
  const inScope = sql`d.organization_id = ${organization_id} and d.network_id = ${network_id}`
  // A webhook is of one organization: asked for both at once, the server may walk through all of the
  // organization's history for the few rows of a quiet webhook. A transaction has few of either.
  const chosen = transaction_hash
    ? sql`${inScope} and transaction_hash = ${transaction_hash}
        ${webhook_id ? sql`and webhook_id = ${webhook_id}` : sql``}`
    : webhook_id
      ? sql`webhook_id = ${webhook_id}`
      : inScope
  const order = sql`order by create_time desc, webhook_history_id desc`
  const looked = sql`
    select webhook_history_id, webhook_id, create_time from delivery d
    where sequence is not null and ${chosen}
      ${from_time ? sql`and create_time >= ${from_time}` : sql``}
      ${to_time ? sql`and create_time <= ${to_time}` : sql``}
      ${
        after
          ? sql`and (create_time, webhook_history_id)
            < (${after.create_time}::timestamptz, ${after.webhook_history_id}::uuid)`
          : sql``
      }
    ${order} limit ${listScan}`
  // Looking ends with the page. The last one that was looked at is only read where the page is short, and in the same
  // statement: new notifications come before it.
  const { rows: found } = await sql<HistoryRow & { is_listed: boolean; listed_count: number }>`
    with page as materialized (
      select webhook_history_id from (${looked}) d
      where webhook_id <> all(${endless}::uuid[])
      ${order} limit ${limit + 1}),
    keys as materialized (
      select webhook_history_id, true as is_listed from page
      union all
      select webhook_history_id, false from (
        select webhook_history_id from (${looked}) d
        where (select count(*) from page) <= ${limit} ${order} offset ${listScan - 1}) d)
    select d.*, ${stateOf(now)}
    from (
      select d.*, k.is_listed, (count(*) filter (where k.is_listed) over ())::int4 as listed_count,
        -- Of those before it. The sizes are known without reading the bodies.
        coalesce(sum(pg_column_size(d.data)) over (${order} rows between unbounded preceding and 1 preceding), 0) as bytes
      from keys k join delivery d using (webhook_history_id)
      ${webhook_id ? sql`where ${inScope}` : sql``}) d
    ${stateJoins}
    where d.bytes < ${storedBytesPerPage} or not d.is_listed
    order by d.create_time desc, d.webhook_history_id desc`.execute(db)
  const rows = found.filter(({ is_listed }) => is_listed).slice(0, limit)
  const end = found.find(({ is_listed }) => !is_listed)
  return { rows, next: rows.length < (found[0]?.listed_count ?? 0) ? rows.at(-1) : end }
}

/** A notification of a webhook that is more than waiting. */
export const findDelivery = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  webhook_history_id: string,
  now: Date,
): Promise<HistoryRow | undefined> => {
  const endless = await listEndless(db, { organization_id, network_id })
  const { rows } = await sql<HistoryRow>`
    select d.*, ${stateOf(now)} from delivery d ${stateJoins}
    where d.webhook_history_id = ${webhook_history_id} and d.organization_id = ${organization_id}
      and d.network_id = ${network_id} and d.sequence is not null
      and d.webhook_id <> all(${endless}::uuid[])`.execute(db)
  return rows[0]
}

/** The newest attempts to deliver a notification, oldest first. */
export const listAttempts = async (
  db: Db,
  { webhook_id, sequence }: Pick<DeliveryRow, 'webhook_id' | 'sequence'>,
  limit: number,
): Promise<AttemptRow[]> => {
  const rows = await db
    .selectFrom('delivery_attempt')
    .selectAll()
    .where('webhook_id', '=', webhook_id)
    .where('sequence', '=', sequence)
    .orderBy('attempt', 'desc')
    .limit(limit)
    .execute()
  // Read newest first for the limit, shown oldest first.
  return rows.toReversed()
}

// A retry begins again with the first pause.
const again = (now: Date) => sql`
  webhook_status = 'WEBHOOK_STATUS_PENDING', next_attempt_time = ${now}, retry_step = 0`

/** Makes a notification due now, whatever became of it. Its webhook is locked and enabled. */
export const retryDelivery = async (
  trx: Db,
  webhook_history_id: string,
  now: Date,
): Promise<number> => {
  // A key share lock: retention must not remove the notification while it is queued again.
  const { numAffectedRows } = await sql`
    insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence,
      webhook_status, next_attempt_time, retry_step)
    select webhook_history_id, organization_id, webhook_id, sequence, 'WEBHOOK_STATUS_PENDING',
      ${now}, 0
    from delivery where webhook_history_id = ${webhook_history_id}
    for key share
    on conflict (webhook_history_id) do update set ${again(now)}`.execute(trx)
  return Number(numAffectedRows ?? 0n)
}
