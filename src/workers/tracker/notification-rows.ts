import { hashId } from '../../lib/hash-id.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { WaitingNotification } from '../../storage/webhooks/due-notifications.ts'
import { findTakenBack, insertWaiting } from '../../storage/webhooks/notifications.ts'

/** A waiting notification before it has its id. */
export type Waiting = Omit<Parameters<typeof insertWaiting>[1][number], 'webhook_history_id'> & {
  /** What the id is made of beside the webhook, as hex. */
  key: readonly string[]
}

/**
 * Stores each notification once. Where a reorganization has taken one back and the block has returned,
 * it is stored anew under the id of the next generation: receivers drop what has an id that they know.
 */
export async function insertGenerations(trx: Db, waiting: readonly Waiting[]): Promise<void> {
  // Almost always one round: a second one runs only for ids that exist and were retracted.
  let left = waiting
  for (let generation = 0; left.length > 0; generation++) {
    const rows = left.map(({ key, ...row }) => ({
      ...row,
      webhook_history_id: hashId(
        'notification',
        row.webhook_id,
        ...key.map((part) => Buffer.from(part, 'hex')),
        ...(generation > 0 ? [generation] : []),
      ),
    }))
    // All rows are new, which is the usual case, so nothing has to be looked up.
    if ((await insertWaiting(trx, rows)) === rows.length) return
    const gone = await findTakenBack(
      trx,
      rows.map((row) => row.webhook_history_id),
    )
    left = left.filter((_, at) => gone.has(rows[at]!.webhook_history_id))
  }
}

/** The id of the notification that follows one of which something was pending. */
export const followUpIdOf = (webhook_history_id: string): string =>
  // Derived, so that a block that is stored again writes no second follow-up.
  hashId('confirmed', webhook_history_id)

/** What was sent as pending is followed by a notification when the first of it is confirmed. */
export function toFollowUp(
  delivery: WaitingNotification,
  pending: { count: number; due_block: number },
  { network_id, now }: { network_id: number; now: Date },
) {
  const { organization_id, webhook_id, notification_type, transaction_hash, block_number } =
    delivery
  const { transfer_block, backfilled } = delivery
  return {
    webhook_history_id: followUpIdOf(delivery.webhook_history_id),
    organization_id,
    network_id,
    webhook_id,
    notification_type,
    data: {
      block_number: transfer_block,
      pending: pending.count,
      ...(backfilled && { backfilled }),
    },
    transaction_hash,
    block_number,
    due_block: pending.due_block,
    create_time: now,
  }
}
