import { type TransactionEvent, transactionStateAfter } from '../../contract/records/states.ts'
import type { Db } from '../../storage/pg/database.ts'
import { noteFreed } from '../../storage/transactions/sender-nonces.ts'
import {
  type TransactionChange,
  type TransactionRow,
  updateTransaction,
  updateTransactions,
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
  const transaction_state = stateAfter(row, event)
  const moved = await updateTransaction(trx, row, {
    ...change,
    transaction_state,
    update_time: now,
  })
  // The one state that frees a nonce: what ended on the chain has used it.
  if (transaction_state === 'TRANSACTION_STATE_CANCELED') await noteFreed(trx, row)
  return moved
}

/**
 * Moves transactions that the caller has locked, in one statement for each state that they come to. In the order in which they
 * are given.
 */
export async function moveTransactions(
  trx: Db,
  rows: readonly TransactionRow[],
  { eventOf, change, now }: Omit<Move, 'event'> & { eventOf(row: TransactionRow): BlockEvent },
): Promise<TransactionRow[]> {
  const moved = new Map<string, TransactionRow>()
  for (const [transaction_state, some] of Map.groupBy(rows, (row) => stateAfter(row, eventOf(row))))
    for (const row of await updateTransactions(trx, some, {
      ...change,
      transaction_state,
      update_time: now,
    }))
      moved.set(nameOf(row), row)
  return rows.map((row) => moved.get(nameOf(row))!)
}

/** What blocks do with many transactions at once. None of it frees a nonce. */
export type BlockEvent = Extract<
  TransactionEvent,
  'confirmed' | 'reverted' | 'replaced' | 'reorganized'
>

const nameOf = ({ organization_id, transaction_id }: TransactionRow): string =>
  `${organization_id}/${transaction_id}`

function stateAfter(
  { transaction_state }: TransactionRow,
  event: TransactionEvent,
): TransactionRow['transaction_state'] {
  const after = transactionStateAfter(transaction_state, event)
  if (!after) throw new NoArrowError(`${transaction_state} has no arrow for "${event}"`)
  return after
}
