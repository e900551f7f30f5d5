import { sql } from 'kysely'
import type { RowOf } from './columns.ts'
import type { Db } from './database.ts'
import type { DeliveryRow } from './notifications.ts'
import type { WalletScope } from './wallets.ts'
import type { webhookTables } from './webhook-tables.ts'

/** A stored attempt. */
export type AttemptRow = RowOf<typeof webhookTables.delivery_attempt>

/** Where a page of histories goes on. */
export type DeliveryPosition = Pick<DeliveryRow, 'create_time' | 'webhook_history_id'>

type Filter = {
  webhook_id?: string | undefined
  /** Both ends included. */
  from_time?: Date | undefined
  to_time?: Date | undefined
  after?: DeliveryPosition | undefined
  limit: number
  now: Date
}

// A claim does not write the status: it is what the claim says it is.
const status = (now: Date) => sql`
  case when webhook_status = 'WEBHOOK_STATUS_PENDING' and claim_expire_time > ${now}
    then 'WEBHOOK_STATUS_IN_PROGRESS' else webhook_status end`

/** One page of notifications that are more than waiting, newest first. */
export const listDeliveries = async (
  db: Db,
  { organization_id, chain_id }: WalletScope,
  { webhook_id, from_time, to_time, after, limit, now }: Filter,
): Promise<DeliveryRow[]> => {
  const { rows } = await sql<DeliveryRow>`
    select *, ${status(now)} as webhook_status from delivery
    where organization_id = ${organization_id} and chain_id = ${chain_id} and sequence is not null
      ${webhook_id ? sql`and webhook_id = ${webhook_id}` : sql``}
      ${from_time ? sql`and create_time >= ${from_time}` : sql``}
      ${to_time ? sql`and create_time <= ${to_time}` : sql``}
      ${
        after
          ? sql`and (create_time, webhook_history_id)
            < (${after.create_time}::timestamptz, ${after.webhook_history_id}::uuid)`
          : sql``
      }
    order by create_time desc, webhook_history_id desc limit ${limit}`.execute(db)
  return rows
}

/** A notification that is more than waiting. */
export const findDelivery = async (
  db: Db,
  { organization_id, chain_id }: WalletScope,
  webhook_history_id: string,
): Promise<DeliveryRow | undefined> =>
  await db
    .selectFrom('delivery')
    .selectAll()
    .where('webhook_history_id', '=', webhook_history_id)
    .where('organization_id', '=', organization_id)
    .where('chain_id', '=', chain_id)
    .where('sequence', 'is not', null)
    .executeTakeFirst()

/** The newest attempts to deliver a notification, oldest first. */
export const listAttempts = async (
  db: Db,
  webhook_history_id: string,
  limit: number,
): Promise<AttemptRow[]> => {
  const rows = await db
    .selectFrom('delivery_attempt')
    .selectAll()
    .where('webhook_history_id', '=', webhook_history_id)
    .orderBy('attempt', 'desc')
    .limit(limit)
    .execute()
  return rows.toReversed()
}

const again = (now: Date) => sql`
  webhook_status = 'WEBHOOK_STATUS_PENDING', next_attempt_time = ${now}, retry_step = 0,
  update_time = ${now}`

/** Makes a notification due now, whatever became of it. Its webhook is locked and enabled. */
export const retryDelivery = async (
  trx: Db,
  webhook_history_id: string,
  now: Date,
): Promise<number> => {
  const { numAffectedRows } = await sql`
    update delivery set ${again(now)} where webhook_history_id = ${webhook_history_id}`.execute(trx)
  return Number(numAffectedRows ?? 0n)
}

/** Makes all failed notifications of a webhook due now; it is locked and enabled. */
export const retryFailed = async (
  trx: Db,
  webhook_id: string,
  { from_time, now }: { from_time: Date; now: Date },
): Promise<number> => {
  const { numAffectedRows } = await sql`
    update delivery set ${again(now)}
    where webhook_id = ${webhook_id} and webhook_status = 'WEBHOOK_STATUS_FAILED'
      and create_time >= ${from_time}`.execute(trx)
  return Number(numAffectedRows ?? 0n)
}
