// Webhooks, notifications, deliveries and attempts. Sequence numbers are gapless per webhook; locks
// are taken by id: webhooks, queues, rows.

import { sql } from 'kysely'
import { countedFailures } from '../../contract/limits.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import { dropSubject, resolveSubject } from '../tracking/operational-events.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { webhookTables } from './tables.ts'

/** A stored webhook. */
export type WebhookRow = RowOf<typeof webhookTables.webhook>

/** A webhook as it is listed. */
export type ListedWebhook = WebhookRow & {
  success_rate: number | null
  /** At most `countedFailures`. */
  failed_count: number
}

// Of so many newest notifications the success rate is taken.
const rated = 100

/** Stores a webhook. */
export const insertWebhook = async (
  db: Db,
  webhook: Pick<
    WebhookRow,
    | 'webhook_id'
    | 'organization_id'
    | 'network_id'
    | 'wallet_id'
    | 'webhook_endpoint'
    | 'confirmation'
    | 'secret_sealed'
    | 'create_time'
  > &
    Partial<Pick<WebhookRow, 'first_event'>> &
    WebhookChange,
): Promise<void> => {
  await db
    .insertInto('webhook')
    .values({
      ...webhook,
      webhook_state: 'WEBHOOK_STATE_ENABLED',
      next_sequence: 1,
      update_time: webhook.create_time,
    })
    .execute()
}

const ofScope = (db: Db, { organization_id, network_id }: WalletScope) =>
  db
    .selectFrom('webhook')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)
    // A stream is no webhook of the operations.
    .where('sink', 'is', null)

/** A webhook of this organization and chain. */
export const findWebhook = async (
  db: Db,
  scope: WalletScope,
  webhook_id: string,
): Promise<WebhookRow | undefined> =>
  await ofScope(db, scope).where('webhook_id', '=', webhook_id).executeTakeFirst()

/** The same, locked against everything that numbers, enables, disables or removes it. */
export const lockWebhook = async (
  trx: Db,
  scope: WalletScope,
  webhook_id: string,
): Promise<WebhookRow | undefined> =>
  await ofScope(trx, scope).where('webhook_id', '=', webhook_id).forNoKeyUpdate().executeTakeFirst()

/** One page of webhooks in the order of their creation. */
export const listWebhooks = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  filter: {
    wallet_id?: string | undefined
    webhook_id?: string | undefined
    after?: string | undefined
    limit: number
  },
): Promise<ListedWebhook[]> => {
  const { wallet_id, webhook_id, after, limit } = filter
  const { rows } = await sql<ListedWebhook>`
    select w.*, r.success_rate, f.failed_count from (
      select * from (
        select * from webhook
        where organization_id = ${organization_id} and network_id = ${network_id} and sink is null
          ${wallet_id ? sql`and wallet_id = ${wallet_id}` : sql``}
          ${webhook_id ? sql`and webhook_id = ${webhook_id}` : sql``}
          ${after ? sql`and webhook_id > ${after}` : sql``}
        -- A boundary for the planner: in the order of their ids it reads the webhooks of all tenants.
        offset 0) own
      order by webhook_id limit ${limit}) w
    left join lateral (
      select avg(case when q.webhook_history_id is null then 1 when exists (
          select 1 from delivery_attempt a
          where a.webhook_id = n.webhook_id and a.sequence = n.sequence)
          then 0 end)::float8 as success_rate
      from (
        select webhook_history_id, webhook_id, sequence from delivery
        where webhook_id = w.webhook_id and sequence is not null
        order by create_time desc, webhook_history_id desc limit ${rated}) n
      left join delivery_queue q on q.webhook_history_id = n.webhook_history_id) r on true
    -- Bounded: a receiver that is down for days has failed many.
    left join lateral (
      select count(*)::int4 as failed_count from (
        select 1 from delivery_queue q
        where q.webhook_id = w.webhook_id and q.next_attempt_time is null
          and q.webhook_status = 'WEBHOOK_STATUS_FAILED'
        limit ${countedFailures}) n) f on true
    order by w.webhook_id`.execute(db)
  return rows
}

/** Gives a locked webhook its secrets: the newest, and those that sign too until they expire. */
export const setWebhookSecret = async (
  trx: Db,
  webhook: Pick<
    WebhookRow,
    | 'webhook_id'
    | 'secret_sealed'
    | 'previous_secret_sealed'
    | 'previous_secret_expire_time'
    | 'update_time'
  >,
): Promise<void> => {
  const { webhook_id, update_time, ...values } = webhook
  const set = { ...values, ...changedAt(update_time) }
  await trx.updateTable('webhook').set(set).where('webhook_id', '=', webhook_id).execute()
}

// While both times are equal, nothing of a disabled webhook has been released (`queue-pages.ts`).
const changedAt = (update_time: Date) => ({
  update_time,
  disable_time: sql<Date | null>`
    case when disable_time = update_time then ${update_time}::timestamptz else disable_time end`,
})

/** Changes a locked webhook. */
export const updateWebhook = async (
  trx: Db,
  webhook_id: string,
  {
    update_time,
    ...change
  }: WebhookChange & {
    next_confirmation?: number | null
    earlier_events?: string | null
    update_time?: Date
  },
): Promise<void> => {
  const set = { ...change, ...(update_time && changedAt(update_time)) }
  await trx.updateTable('webhook').set(set).where('webhook_id', '=', webhook_id).execute()
}

/**
 * Lets a page of the notifications of a locked webhook wait for another number of confirmations. Answers the block that it ended
 * with where more may follow. Fewer are counted from the first one that is due, more from the last one: blocks between two
 * pages then release notifications in the order of the chain.
 */
export const postponeDeliveries = async (
  trx: Db,
  webhook_id: string,
  { confirmation, isFewer, after, limit }: Postponed,
): Promise<number | undefined> => {
  const [order, following] = isFewer ? [sql`asc`, sql`>`] : [sql`desc`, sql`<`]
  const waiting = sql`webhook_id = ${webhook_id} and due_block is not null
    ${after === undefined ? sql`` : sql`and due_block ${following} ${after}`}`
  const { rows } = await sql<{ due_block: number }>`
    select due_block from delivery where ${waiting}
    order by due_block ${order} offset ${limit - 1} limit 1`.execute(trx)
  const edge = rows[0]?.due_block
  const due = sql`block_number + ${Math.max(confirmation, 1)}::int8 - 1`
  await sql`
    update delivery set due_block = ${due}
    where ${waiting} ${edge === undefined ? sql`` : sql`and not due_block ${following} ${edge}`}
      and due_block <> ${due} and not data ? 'pending'`.execute(trx)
  return edge
}

type Postponed = {
  confirmation: number
  isFewer: boolean
  after: number | undefined
  limit: number
}

/** What can be changed of a webhook. */
export type WebhookChange = Partial<
  Pick<WebhookRow, 'webhook_endpoint' | 'confirmation' | 'events'>
>

/** Forgets the failures of a locked webhook, which were those of another endpoint. */
export const forgetFailures = async (trx: Db, webhook_id: string): Promise<void> => {
  await trx
    .updateTable('webhook')
    .set({ failing_since: null })
    .where('webhook_id', '=', webhook_id)
    .execute()
}

/** The webhooks of one wallet, locked in the order of their ids. */
export const lockWebhooksOf = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
  { wallet_id, limit }: { wallet_id: string; limit: number },
): Promise<string[]> => {
  const { rows } = await sql<{ webhook_id: string }>`
    select webhook_id from webhook
    where network_id = ${network_id} and organization_id = ${organization_id}
      and wallet_id = ${wallet_id}
    order by webhook_id limit ${limit} for no key update`.execute(trx)
  return rows.map(({ webhook_id }) => webhook_id)
}

/** Enables a locked webhook; its queue is released page by page (`queue-pages.ts`). */
export const enableWebhook = async (trx: Db, webhook_id: string, now: Date): Promise<void> => {
  await sql`
    update webhook set webhook_state = 'WEBHOOK_STATE_ENABLED', disable_reason = null,
      disable_time = null, failing_since = null, update_time = ${now}
    where webhook_id = ${webhook_id}`.execute(trx)
  await resolveSubject(trx, { kind: 'webhook_disabled', subject: webhook_id, now })
}

/** Disables a locked webhook: what comes is held back, and what is not delivered yet page by page (`queue-pages.ts`). */
export const disableWebhook = async (
  trx: Db,
  webhook_id: string,
  { reason, now }: { reason: string; now: Date },
): Promise<void> => {
  await sql`
    update webhook set webhook_state = 'WEBHOOK_STATE_DISABLED', disable_reason = ${reason},
      disable_time = ${now}, update_time = ${now}
    where webhook_id = ${webhook_id} and webhook_state = 'WEBHOOK_STATE_ENABLED'`.execute(trx)
}

/** Removes a locked webhook whose queue has ended, with its headers, and says how many those were. Its history stays. */
export const deleteWebhook = async (trx: Db, webhook_id: string): Promise<number> => {
  const { numDeletedRows } = await trx
    .deleteFrom('webhook_header')
    .where('webhook_id', '=', webhook_id)
    .executeTakeFirst()
  await trx.deleteFrom('webhook').where('webhook_id', '=', webhook_id).execute()
  await dropSubject(trx, { kind: 'webhook_disabled', subject: webhook_id })
  return Number(numDeletedRows)
}
