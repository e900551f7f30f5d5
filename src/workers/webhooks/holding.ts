import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { holdDisabled } from '../../storage/webhooks/queue-pages.ts'

// Couriers meet the others again while they have something due.
const mostWebhooks = 10_000

/**
 * Holds back what is queued for disabled webhooks, beside claims and records, which others wait for: a page of each in
 * turns. A page is a transaction of its own, because a block that notifies the webhook waits for it.
 */
export function createHolding({ db, clock, log }: { db: Db; clock: Clock; log: Log }) {
  const webhooks = new Set<string>()
  let isStopping = false
  let running: Promise<void> | undefined

  const run = async (): Promise<void> => {
    try {
      while (webhooks.size > 0 && !isStopping)
        for (const webhook_id of webhooks) {
          if (isStopping) break
          if (!(await holdDisabled(db, webhook_id, clock.now()))) webhooks.delete(webhook_id)
        }
    } catch (error) {
      webhooks.clear()
      log.warn({ err: error }, 'holding back notifications failed, will retry')
    }
    // In the same turn as the last look at the list: what is added from now on starts it again.
    running = undefined
  }

  return {
    add: (webhook_ids: readonly string[]): void => {
      for (const webhook_id of webhook_ids)
        if (webhooks.size < mostWebhooks) webhooks.add(webhook_id)
      if (webhooks.size > 0 && !isStopping) running ??= run()
    },
    /** Its notifications are not to be claimed: they are on their way to be held back. */
    has: (webhook_id: string): boolean => webhooks.has(webhook_id),
    stop: async (): Promise<void> => {
      isStopping = true
      await running
    },
  }
}
