import { sql } from 'kysely'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { webhookTables } from './tables.ts'

/** A stored header. */
export type WebhookHeaderRow = RowOf<typeof webhookTables.webhook_header>

/** The headers of a webhook, or with null those of all webhooks, in the order of their registration. */
export const listWebhookHeaders = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  webhook_id: string | null,
): Promise<WebhookHeaderRow[]> =>
  await db
    .selectFrom('webhook_header')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)
    .where('webhook_id', webhook_id === null ? 'is' : '=', webhook_id)
    .orderBy('webhook_header_id')
    .execute()

/** Lets one transaction at a time add to the headers of all webhooks, in all processes. */
export const lockSharedHeaders = async (
  trx: Db,
  { organization_id, network_id }: WalletScope,
): Promise<void> => {
  const name = `webhook_header/${organization_id}/${network_id}`
  // An advisory lock: without a shared header there is no row that could be locked.
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(trx)
}

/** Stores headers; a key that the webhook has already keeps its row and id. */
export const insertWebhookHeader = async (
  db: Db,
  header: WebhookHeaderRow,
): Promise<WebhookHeaderRow | undefined> =>
  await db
    .insertInto('webhook_header')
    .values(header)
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()

/** The header of a webhook, or of all, by its key in any case. */
export const findWebhookHeader = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  { webhook_id, header_key }: Pick<WebhookHeaderRow, 'webhook_id' | 'header_key'>,
): Promise<WebhookHeaderRow | undefined> => {
  // Names of HTTP headers do not depend on case, so the stored case must not matter either.
  const { rows } = await sql<WebhookHeaderRow>`
    select * from webhook_header
    where organization_id = ${organization_id} and network_id = ${network_id}
      and webhook_id is not distinct from ${webhook_id}::uuid
      and lower(header_key) = lower(${header_key}) for update`.execute(db)
  return rows[0]
}

/** Gives a header another value. */
export const setWebhookHeader = async (
  db: Db,
  header: Pick<WebhookHeaderRow, 'webhook_header_id' | 'header_key' | 'header_value_sealed'>,
): Promise<void> => {
  const { webhook_header_id, ...values } = header
  await db
    .updateTable('webhook_header')
    .set(values)
    .where('webhook_header_id', '=', webhook_header_id)
    .execute()
}

/** Removes a header and says whether there was one. */
export const deleteWebhookHeader = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  webhook_header_id: string,
): Promise<boolean> => {
  const { numDeletedRows } = await db
    .deleteFrom('webhook_header')
    .where('webhook_header_id', '=', webhook_header_id)
    .where('organization_id', '=', organization_id)
    .where('network_id', '=', network_id)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
