import { sql } from 'kysely'
import { type BulkRow, bulkRows, insertRows } from './bulk.ts'
import type { RowOf } from './columns.ts'
import type { Db } from './database.ts'
import type { ListedTransfer } from './transfers.ts'
import type { webhookTables } from './webhook-tables.ts'

/** A stored notification. */
export type DeliveryRow = RowOf<typeof webhookTables.delivery>

/** What the tracker needs of a webhook. */
export type WatchingWebhook = {
  webhook_id: string
  organization_id: string
  wallet_id: string | null
  confirmation: number
}

/** A notification that waits for its block, with its webhook. */
export type WaitingDelivery = {
  webhook_history_id: string
  organization_id: string
  webhook_id: string
  transaction_hash: Buffer
  block_number: number
  /** The block of the transfers that it tells of. */
  transfer_block: number
  wallet_id: string | null
}

/** A notification that is due, with its body. */
export type DueDelivery = Pick<DeliveryRow, 'webhook_history_id' | 'webhook_id'> & { data: object }

/** The webhooks of some organizations on a chain. */
export const findWebhooks = async (
  trx: Db,
  chain_id: number,
  organization_ids: readonly string[],
): Promise<WatchingWebhook[]> => {
  if (organization_ids.length === 0) return []
  return await trx
    .selectFrom('webhook')
    .select(['webhook_id', 'organization_id', 'wallet_id', 'confirmation'])
    .where('chain_id', '=', chain_id)
    .where(sql<boolean>`organization_id = any(${organization_ids as string[]}::uuid[])`)
    .execute()
}

/** Stores notifications that wait for their block; those that are there stay as they are. */
export const insertWaiting = async (
  trx: Db,
  rows: readonly Omit<BulkRow<'delivery'>, 'webhook_status' | 'delivery_count'>[],
): Promise<number> =>
  await insertRows(
    trx,
    'delivery',
    rows.map((row) => ({
      ...row,
      webhook_status: 'WEBHOOK_STATUS_PENDING',
      delivery_count: 0,
    })),
  )

/** The notifications that this head makes due, oldest block first. */
export const listDueWaiting = async (
  trx: Db,
  { chain_id, head, limit }: { chain_id: number; head: number; limit: number },
): Promise<WaitingDelivery[]> => {
  const { rows } = await sql<WaitingDelivery>`
    select d.webhook_history_id, d.organization_id, d.webhook_id, d.transaction_hash, d.block_number,
      (d.data->>'block_number')::int8 as transfer_block, w.wallet_id
    from delivery d join webhook w on w.webhook_id = d.webhook_id
    where d.chain_id = ${chain_id} and d.due_block <= ${head}
    order by d.due_block, d.block_number limit ${limit}`.execute(trx)
  return rows
}

/** The transfers that notifications tell of, in the order of the chain. */
export const listNotifiedTransfers = async (
  trx: Db,
  chain_id: number,
  waiting: readonly Pick<WaitingDelivery, 'transaction_hash' | 'transfer_block'>[],
): Promise<ListedTransfer[]> => {
  const hashes = waiting.map(({ transaction_hash }) => transaction_hash)
  const numbers = waiting.map(({ transfer_block }) => transfer_block)
  const { rows } = await sql<ListedTransfer>`
    select t.*, a.asset_type, a.contract_address, a.token_id, a.name, a.symbol, a.decimals,
      a.token_uri, a.token_data, w.confirmation
    from transfer t join asset a on a.asset_id = t.asset_id join wallet w on w.wallet_id = t.wallet_id
    where t.chain_id = ${chain_id} and t.block_number = any(${numbers}::int8[])
      and t.transaction_hash = any(${hashes}::bytea[])
    order by t.block_number, t.ordinal, t.side`.execute(trx)
  return rows
}

/** Takes numbers out of the webhooks' sequences and says the first one of each. */
export const takeSequences = async (
  trx: Db,
  counts: ReadonlyMap<string, number>,
): Promise<Map<string, number>> => {
  const rows = [...counts].map(([webhook_id, count]) => ({ webhook_id, count }))
  // Locked in one order, so that two writers wait but never for each other.
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

/** Makes waiting notifications real: they get number, body and time, and the courier finds them. */
export const releaseWaiting = async (
  trx: Db,
  due: readonly (DueDelivery & { sequence: number })[],
  now: Date,
): Promise<void> => {
  if (due.length === 0) return
  await sql`
    update delivery d set sequence = r.sequence, data = r.data, due_block = null, create_time = ${now},
      update_time = ${now},
      webhook_status = case w.webhook_state when 'WEBHOOK_STATE_ENABLED'
        then 'WEBHOOK_STATUS_PENDING' else 'WEBHOOK_STATUS_ON_HOLD' end,
      next_attempt_time = case w.webhook_state when 'WEBHOOK_STATE_ENABLED' then ${now}::timestamptz end
    from json_to_recordset(${bulkRows(due)}::text::json)
      r (webhook_history_id uuid, sequence int8, data jsonb), webhook w
    where d.webhook_history_id = r.webhook_history_id and w.webhook_id = d.webhook_id`.execute(trx)
}

/** Drops waiting notifications by their ids. */
export const deleteWaiting = async (trx: Db, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return
  await sql`
    delete from delivery where webhook_history_id = any(${ids as string[]}::uuid[])
      and due_block is not null`.execute(trx)
}

/** Cancels what waits for blocks above a number, and gives what was already told of them. */
export const cancelNotificationsAbove = async (
  trx: Db,
  chain_id: number,
  number: number,
): Promise<DeliveryRow[]> => {
  await sql`
    delete from delivery where chain_id = ${chain_id} and block_number > ${number}
      and due_block is not null`.execute(trx)
  const { rows } = await sql<DeliveryRow>`
    select * from delivery where chain_id = ${chain_id} and block_number > ${number}
    order by webhook_id, sequence`.execute(trx)
  return rows
}

/** Which of these notifications exist. */
export const findExisting = async (trx: Db, ids: readonly string[]): Promise<Set<string>> => {
  if (ids.length === 0) return new Set()
  const rows = await trx
    .selectFrom('delivery')
    .select('webhook_history_id')
    .where(sql<boolean>`webhook_history_id = any(${ids as string[]}::uuid[])`)
    .execute()
  return new Set(rows.map(({ webhook_history_id }) => webhook_history_id))
}
