import { type TransactionEvent, transactionStateAfter } from '../../contract/records/states.ts'
import type { Db } from '../../storage/pg/database.ts'
import { noteFreed } from '../../storage/transactions/sender-nonces.ts'
import {
  type TransactionChange,
  type TransactionRow,
  updateTransaction,
} from '../../storage/transactions/transactions.ts'

/** What is to be written with a move. */
export type Move = { event: TransactionEvent; change?: TransactionChange; now: Date }

/** A move that the table of states does not have: a fault of ours, and nothing is written. */
export class NoArrowError extends Error {
  override name = 'NoArrowError'
}

/**
 * Moves a transaction that the caller has locked along an arrow of the table. Every change of state
 * goes through here; the callers notify at the end of their transaction.
 */
export async function moveTransaction(
  trx: Db,
  row: TransactionRow,
  { event, change, now }: Move,
): Promise<TransactionRow> {
  const transaction_state = transactionStateAfter(row.transaction_state, event)
  if (!transaction_state)
    throw new NoArrowError(`${row.transaction_state} has no arrow for "${event}"`)
  const moved = await updateTransaction(trx, row, {
    ...change,
    transaction_state,
    update_time: now,
  })
  // The one state that frees a nonce: what ended on the chain has used it.
  if (transaction_state === 'TRANSACTION_STATE_CANCELED') await noteFreed(trx, row)
  return moved
}
