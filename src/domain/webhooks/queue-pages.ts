import { setTimeout as delay } from 'node:timers/promises'
import { OperationError } from '../../contract/errors/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import { lockWebhook, type WebhookRow } from '../../storage/webhooks/webhooks.ts'
import { inBulkTurn } from '../bulk.ts'
import type { Context } from '../context.ts'

const longestPauseMs = 100

/**
 * Waits after a page that began then, for as long as the page took. PostgreSQL does not keep the order in which
 * transactions wait for a row: it wakes the next one, and a page that began at once would lock the row before that runs. So
 * a block of all organizations waits for one page, and not for as many as there are.
 */
export const pauseAfterPage = async (began: number, signal: AbortSignal): Promise<void> => {
  const pauseMs = Math.min(performance.now() - began, longestPauseMs)
  await delay(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted())
}

/**
 * Changes a webhook and its queue, in transactions of one page each, until a page says that nothing is left
 * (`storage/webhooks/queue-pages.ts`). Each has the webhook locked as it is then: another call may have changed it between
 * two pages. After a call that broke off, repeating it does the rest.
 */
export async function inQueuePages(
  context: Pick<Context, 'db' | 'signal' | 'bulkTurns' | 'principal'>,
  target: { scope: WalletScope; webhook_id: string; isOptional?: boolean; isBegun?: boolean },
  change: (trx: Db, row: WebhookRow, isFirst: boolean) => Promise<boolean>,
): Promise<void> {
  const { scope, webhook_id, isOptional = false, isBegun = false } = target
  let isMore = true
  for (let isFirst = true; isMore; isFirst = false) {
    let began = 0
    const page = async (trx: Db) => {
      began = performance.now()
      // The webhook before its queue, as in every writer.
      const row = isUuid(webhook_id) ? await lockWebhook(trx, scope, webhook_id) : undefined
      if (row) return await change(trx, row, isFirst)
      if (isFirst && !isOptional) throw new OperationError('WEBHOOK_NOT_FOUND')
      return false
    }
    isMore = await inBulkTurn(context, page, isFirst && !isBegun)
    if (isMore) await pauseAfterPage(began, context.signal)
  }
}
