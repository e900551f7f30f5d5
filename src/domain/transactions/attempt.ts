// Write-ahead of sending. The row says that the bytes may have left before they leave. After a crash the same bytes are sent again,
// which a chain accepts once.

import type { Handover } from '../../chains/sending.ts'
import type { Db } from '../../storage/pg/database.ts'
import { isOnTheWay } from '../../storage/transactions/record.ts'
import { type TransactionRow, updateTransaction } from '../../storage/transactions/transactions.ts'
import type { Context } from '../context.ts'
import { moveTransaction } from './move.ts'
import { withTransaction } from './scope.ts'

/** One handing over of the bytes: how the row stood when it began. */
export type Attempt = {
  row: TransactionRow
  raw: Buffer
  hash: Buffer
  /** Whether an earlier attempt may have left the bytes with a node. */
  wasUnsure: boolean
}

/** Longer than an attempt takes: then it died with its process, and the sender repeats it. */
const takeoverMs = 10_000
const firstRetryMs = 1_000
const lastRetryMs = 30_000
/** A node may forget what waits long, and others never heard of it. */
const rebroadcastMs = 30_000

/**
 * Writes ahead that the bytes are about to leave, before any of them does. After a crash at any later
 * instruction the row has the attempt, and the same bytes are sent again: never others, never none.
 */
export async function beginAttempt(trx: Db, row: TransactionRow, now: Date): Promise<Attempt> {
  const { raw_transaction: raw, transaction_hash: hash, is_unsure: wasUnsure } = row
  if (!raw || !hash) throw new Error(`the transaction ${row.transaction_id} is not signed`)
  const change = {
    broadcast_count: row.broadcast_count + 1,
    broadcast_time: now,
    next_broadcast_time: new Date(now.getTime() + takeoverMs),
    // Written before the bytes leave: after a crash it is not known whether a node got them.
    is_unsure: true,
  }
  const begun =
    row.transaction_state === 'TRANSACTION_STATE_SIGNED'
      ? await moveTransaction(trx, row, {
          event: 'send',
          now,
          change: { ...change, sent_time: now, last_error: null },
        })
      : await updateTransaction(trx, row, change)
  return { row: begun, raw, hash, wasUnsure }
}

/**
 * Writes down what came of an attempt. A refusal leads back to SIGNED, where the transaction may be
 * canceled and its nonce given away, only when this attempt was the first and is still the last:
 * otherwise a node may hold the bytes that another one refuses now.
 */
export async function settleAttempt(
  tools: Pick<Context, 'db' | 'clock'>,
  attempt: Attempt,
  handover: Handover,
  /** Why it is in no block, beyond what the nodes say. */
  waitsFor?: string,
): Promise<TransactionRow> {
  const { organization_id, network_id, transaction_id, broadcast_count } = attempt.row
  const scope = { organization_id, network_id }
  return await withTransaction(tools, scope, transaction_id, async (trx, row, now) => {
    // The chain was quicker, or the transaction is another one by now.
    if (!isOnTheWay(row) || !row.transaction_hash?.equals(attempt.hash)) return row
    const later = (ms: number) => new Date(now.getTime() + ms)
    const isSending = row.transaction_state === 'TRANSACTION_STATE_SENDING'
    if (handover.kind === 'accepted') {
      const change = { last_error: waitsFor ?? null, next_broadcast_time: later(rebroadcastMs) }
      return isSending
        ? await moveTransaction(trx, row, { event: 'accepted', now, change })
        : await updateTransaction(trx, row, change)
    }
    // A later attempt is under way. What this one brought is not the newest word any more.
    if (row.broadcast_count !== broadcast_count) return row
    const last_error = waitsFor ? `${handover.detail}. ${waitsFor}` : handover.detail
    if (handover.kind === 'refused' && isSending && !attempt.wasUnsure)
      return await moveTransaction(trx, row, {
        event: 'refused',
        now,
        change: { last_error, is_unsure: false, next_broadcast_time: null, sent_time: null },
      })
    const retryMs = Math.min(firstRetryMs * 2 ** Math.min(broadcast_count - 1, 10), lastRetryMs)
    return await updateTransaction(trx, row, {
      last_error,
      next_broadcast_time: later(isSending ? retryMs : rebroadcastMs),
      // No node received it: equal to no attempt.
      ...(handover.kind === 'unsent' && { is_unsure: attempt.wasUnsure }),
    })
  })
}
