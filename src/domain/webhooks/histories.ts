// The deliveries of webhooks as the specification shows them: histories with their attempts, and retries.

import { OperationError } from '../../contract/errors/errors.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { isUuid } from '../../lib/ids.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import {
  findDelivery,
  type HistoryRow,
  listAttempts,
  listDeliveries,
  retryDelivery,
} from '../../storage/webhooks/deliveries.ts'
import { wakeCouriers } from '../../storage/webhooks/notifications.ts'
import { retryFailed } from '../../storage/webhooks/queue-pages.ts'
import type { Context, WalletHandler } from '../context.ts'
import { readPage, sealPosition } from '../pages.ts'
import { readTransaction } from '../read-transaction.ts'
import { readTimes } from '../time-range.ts'
import { readScope } from '../wallets/scope.ts'
import { presentHeaders } from './attempt-headers.ts'
import { getWebhook, getWebhookToSend } from './get-webhook.ts'
import { pauseAfterPage } from './queue-pages.ts'

// Times are not unique: the id decides the order of equals, so that a page neither repeats nor omits one.
type Position = [time: number, webhook_history_id: string]

// A notification that is retried often may have many attempts; the newest are enough.
const maxAttempts = 1_000

/** Lists notifications and how their delivery went, newest first. */
export const ListWebhookHistories: WalletHandler<'ListWebhookHistories'> = async (
  context,
  request,
) => {
  const scope = await readScope(context)
  const { limit, after } = readPage<Position>(context, request)
  const { webhook_id } = request
  if (webhook_id !== undefined && !isUuid(webhook_id)) throw new OperationError('WEBHOOK_NOT_FOUND')
  const { rows, next } = await listDeliveries(context.db, scope, {
    webhook_id,
    transaction_hash: readTransaction(scope.family, request),
    ...readTimes(request),
    after: after && { create_time: new Date(after[0]), webhook_history_id: after[1] },
    limit,
    now: new Date(context.clock.now()),
  })
  // The history of a removed webhook is still there.
  if (webhook_id && rows.length === 0) await getWebhook(context.db, scope, webhook_id)
  const next_page_token = next
    ? sealPosition(context, request, [
        next.create_time.getTime(),
        next.webhook_history_id,
      ] satisfies Position)
    : ''
  return { webhook_histories: rows.map(present), pagination: { next_page_token } }
}

const present = (row: HistoryRow) => ({
  webhook_history_id: row.webhook_history_id,
  webhook_id: row.webhook_id,
  webhook_status: row.webhook_status,
  notification_type: row.notification_type,
  delivery_count: row.delivery_count,
  delivery_time: row.delivery_time && toTimestamp(row.delivery_time),
  create_time: toTimestamp(row.create_time),
  data: row.data as object,
})

/** Lists the attempts to deliver a notification, oldest first. */
export const ListWebhookAttempts: WalletHandler<'ListWebhookAttempts'> = async (
  context,
  { webhook_history_id },
) => {
  const scope = await readScope(context)
  const history = await getHistory(context, scope, webhook_history_id)
  const rows = await listAttempts(context.db, history, maxAttempts)
  return {
    webhook_history: present(history),
    webhook_attempts: rows.map((row) => ({
      attempt: row.attempt,
      attempt_time: toTimestamp(row.attempt_time),
      status_code: row.status_code,
      duration_ms: row.duration_ms,
      error: row.error ?? '',
      response_body: row.response_body?.toString('utf8') ?? '',
      ...presentHeaders(webhook_history_id, row),
    })),
  }
}

/** Delivers a notification again whatever became of it, or all failed ones of a webhook since a time. */
export const RetryWebhookHistory: WalletHandler<'RetryWebhookHistory'> = async (
  context,
  { webhook_history_id, start_time, ...request },
) => {
  const scope = await readScope(context)
  const history =
    webhook_history_id !== undefined && (await getHistory(context, scope, webhook_history_id))
  if (history && request.webhook_id !== undefined && request.webhook_id !== history.webhook_id)
    throw new OperationError('WEBHOOK_HISTORY_NOT_FOUND')
  const webhook_id = history ? history.webhook_id : request.webhook_id!
  const now = new Date(context.clock.now())
  const { from_time = new Date(0) } = readTimes({ start_time })
  let retried_count = 0
  let after: number | undefined = 0
  while (after !== undefined) {
    context.signal.throwIfAborted()
    const began = performance.now()
    const { count, last }: { count: number; last?: number | undefined } = await context.db
      .transaction()
      .execute(async (trx) => {
        // Locks the webhook first, as every writer of its queue does.
        await getWebhookToSend(trx, scope, webhook_id)
        // A notification that was delivered may be sent again on purpose: receivers know it by its id.
        const page = history
          ? { count: await retryDelivery(trx, history.webhook_history_id, now) }
          : await retryFailed(trx, webhook_id, { from_time, now, after: after ?? 0 })
        if (page.count > 0) await wakeCouriers(trx)
        return page
      })
    retried_count += count
    after = last
    if (after !== undefined) await pauseAfterPage(began, context.signal)
  }
  return { retried_count }
}

async function getHistory(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  scope: WalletScope,
  webhook_history_id: string,
): Promise<HistoryRow> {
  const row = isUuid(webhook_history_id)
    ? await findDelivery(db, scope, webhook_history_id, new Date(clock.now()))
    : undefined
  if (!row) throw new OperationError('WEBHOOK_HISTORY_NOT_FOUND')
  return row
}
