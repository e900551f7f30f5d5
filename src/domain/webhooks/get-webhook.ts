import { OperationError } from '../../contract/errors/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import { findWebhook, lockWebhook, type WebhookRow } from '../../storage/webhooks/webhooks.ts'

/** A webhook of the caller; one of another organization gives the same answer as an unknown id. */
export async function getWebhook(
  db: Db,
  scope: WalletScope,
  webhook_id: string,
): Promise<WebhookRow> {
  const row = isUuid(webhook_id) ? await findWebhook(db, scope, webhook_id) : undefined
  if (!row) throw new OperationError('WEBHOOK_NOT_FOUND')
  return row
}

/** The same, locked for a change. */
export async function getWebhookToChange(
  trx: Db,
  scope: WalletScope,
  webhook_id: string,
): Promise<WebhookRow> {
  // The lock comes before those of its queue, as in every writer.
  const row = isUuid(webhook_id) ? await lockWebhook(trx, scope, webhook_id) : undefined
  if (!row) throw new OperationError('WEBHOOK_NOT_FOUND')
  return row
}

/** The same, of which something is to be sent now. */
export async function getWebhookToSend(
  trx: Db,
  scope: WalletScope,
  webhook_id: string,
): Promise<WebhookRow> {
  const row = await getWebhookToChange(trx, scope, webhook_id)
  if (row.webhook_state === 'WEBHOOK_STATE_DISABLED') throw new OperationError('WEBHOOK_DISABLED')
  return row
}
