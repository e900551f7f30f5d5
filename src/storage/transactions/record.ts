import type { RowOf } from '../pg/columns.ts'
import type { transactionTables } from './tables.ts'

/** A stored managed transaction. */
export type ManagedTransactionRow = RowOf<typeof transactionTables.managed_transaction>

const hex = (bytes: Buffer): string => `0x${bytes.toString('hex')}`

/** A transaction that is not in a block for this long is shown as stuck (docs/decisions/transactions.md). */
export const stuckAfterMs = 10 * 60_000

/** Whether a transaction is on its way and in no block. */
export const isOnTheWay = ({
  transaction_state,
}: Pick<ManagedTransactionRow, 'transaction_state'>): boolean =>
  transaction_state === 'TRANSACTION_STATE_SENDING' ||
  transaction_state === 'TRANSACTION_STATE_SENT'

/** Whether a transaction has been on its way for longer than it should. */
export const isStuck = (row: ManagedTransactionRow, now: Date): boolean =>
  isOnTheWay(row) &&
  row.sent_time !== null &&
  now.getTime() - row.sent_time.getTime() >= stuckAfterMs

/** The record of spec 2.9, as operations and notifications return it. */
export const toTransactionRecord = (row: ManagedTransactionRow, now: Date) => ({
  wallet_id: row.wallet_id,
  transaction_id: row.transaction_id,
  transaction_hash: row.transaction_hash ? hex(row.transaction_hash) : '',
  transaction_state: row.transaction_state,
  from: hex(row.from),
  to: hex(row.to),
  value: row.value.toString(),
  gas: row.gas.toString(),
  gas_price: row.gas_price.toString(),
  data: hex(row.data),
  nonce: row.nonce.toString(),
  stuck: isStuck(row, now),
  last_error: row.last_error ?? '',
  warnings: (row.warnings ?? []) as string[],
  // Shown once it is final: until then the block of the other transaction may leave the chain.
  replaced_by:
    row.transaction_state === 'TRANSACTION_STATE_REPLACED' && row.replaced_by
      ? hex(row.replaced_by)
      : '',
})
