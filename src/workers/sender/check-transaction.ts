// One look of the sender at a transaction that is on its way. Normally the tracker decides by the blocks that it stores.
// This finds what it cannot see: blocks that were stored before the row was written ahead.

import type { AccountNonceUse, Sending } from '../../chains/sending.ts'
import { type Attempt, beginAttempt, settleAttempt } from '../../domain/transactions/attempt.ts'
import { withTransaction } from '../../domain/transactions/scope.ts'
import { explainWait } from '../../domain/transactions/wait.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import { awaitCursor, findCursor, holdBlock } from '../../storage/tracking/blocks.ts'
import { lockIfConfirmed } from '../../storage/transactions/open.ts'
import { isOnTheWay } from '../../storage/transactions/record.ts'
import {
  lockTransaction,
  type TransactionRow,
  updateTransaction,
} from '../../storage/transactions/transactions.ts'
import { notifyOfStates } from '../../storage/webhooks/state-notifications.ts'
import { confirm, decideBy } from './follow.ts'

/** What checking transactions needs. */
export type SenderTools = {
  db: Db
  clock: Clock
  log: Log
  network_id: number
  sending: Sending
}

// After the nonce was found in use: the tracker normally stores that block within seconds.
const patienceMs = 5_000
// After a failure, such as nodes that do not answer.
const pauseMs = 30_000
// The reason is shown to the user only, so it may not delay the sender.
const explainMs = 5_000

/** Does the next thing for one transaction that is on its way; failures are for the next round. */
export async function checkTransaction(
  tools: SenderTools,
  row: TransactionRow,
  signal: AbortSignal,
): Promise<void> {
  try {
    // Blocks that the tracker stored before the row was written ahead are never looked at again.
    const number = await tools.sending.findBlockOf(row.transaction_hash!, signal)
    if (number === undefined) await sendAgain(tools, row, signal)
    else await decide(tools, row, { hint: number }, signal)
  } catch (error) {
    if (signal.aborted) return
    tools.log.warn(
      { err: error, transaction_id: row.transaction_id },
      'transaction check failed, will retry',
    )
    const last_error = error instanceof Error ? error.message : String(error)
    await postpone(tools, row, pauseMs, last_error).catch(() => {})
  }
}

async function sendAgain(
  tools: SenderTools,
  seen: TransactionRow,
  signal: AbortSignal,
): Promise<void> {
  const { network_id, sending } = tools
  const scope = { organization_id: seen.organization_id, network_id }
  let attempt: Attempt | undefined
  // Written before it is sent: after a crash in between the transaction counts as possibly broadcast.
  await withTransaction(tools, scope, seen.transaction_id, async (trx, row, now) => {
    // Its state changed since it was listed, or another process handles it now.
    // The count works as a version: two processes with the same row make one attempt.
    if (!isOnTheWay(row) || row.broadcast_count !== seen.broadcast_count || row.replaced_by)
      return row
    attempt = await beginAttempt(trx, row, now)
    return attempt.row
  })
  if (!attempt) return
  // Outside of the transaction: a node may take seconds, and the row must stay usable.
  const handover = await sending.broadcast(attempt.raw, attempt.hash)
  const isAnswered = handover.kind === 'accepted' || handover.kind === 'refused'
  const waitsFor = isAnswered ? await findWait(tools, attempt.row, signal) : undefined
  const settled = await settleAttempt(tools, attempt, handover, waitsFor)
  if (handover.kind === 'nonce_used') await decide(tools, settled, {}, signal)
}

async function findWait(
  tools: SenderTools,
  row: TransactionRow,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(explainMs)])
    return await explainWait(tools, row, new Date(tools.clock.now()), limited)
  } catch {
    return undefined
  }
}

/** Finds the transaction that used the nonce and records it as the tracker would have done. */
async function decide(
  tools: SenderTools,
  row: TransactionRow,
  { hint }: { hint?: number },
  signal: AbortSignal,
): Promise<void> {
  const { db, network_id, sending } = tools
  const upTo = (await findCursor(db, network_id))?.block_number
  const { from, nonce } = row
  const use =
    upTo === undefined || (hint !== undefined && hint > upTo)
      ? undefined
      : await sending.findNonceUse({ from, nonce, upTo, hint }, signal)
  // Above the cursor it is the tracker's to see.
  if (!use || !(await settleUse(tools, row, use))) await postpone(tools, row, patienceMs)
}

async function settleUse(
  { db, clock, network_id }: SenderTools,
  seen: TransactionRow,
  use: AccountNonceUse,
): Promise<boolean> {
  const scope = { organization_id: seen.organization_id, network_id }
  return await db.transaction().execute(async (trx) => {
    const cursor = await awaitCursor(trx, network_id)
    if (!cursor || use.block.number > cursor.block_number) return false
    // The node may answer from a branch that the tracker has not, or no longer, stored.
    if (!(await holdBlock(trx, network_id, use.block))) return false
    const row = await lockTransaction(trx, scope, seen.transaction_id)
    if (!row || !isOnTheWay(row)) return true
    const now = new Date(clock.now())
    const moved = await decideBy(trx, row, use, now)
    // Others are left to blocks, which confirm a page at a time.
    const ended = await confirm(trx, await lockIfConfirmed(trx, row, cursor.block_number), now)
    await notifyOfStates(trx, [...(moved ? [moved] : []), ...ended], now)
    return true
  })
}

async function postpone(
  { db, clock, network_id }: SenderTools,
  seen: TransactionRow,
  ms: number,
  last_error?: string,
): Promise<void> {
  const scope = { organization_id: seen.organization_id, network_id }
  await db.transaction().execute(async (trx) => {
    const row = await lockTransaction(trx, scope, seen.transaction_id)
    // Decided meanwhile by the tracker or the user.
    if (!row || !isOnTheWay(row) || row.next_broadcast_time === null) return
    await updateTransaction(trx, row, {
      next_broadcast_time: new Date(clock.now() + ms),
      ...(last_error !== undefined && { last_error }),
    })
  })
}
