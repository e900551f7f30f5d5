import type { RowOf } from './columns.ts'
import type { transactionTables } from './transaction-tables.ts'

/** A stored managed transaction. */
export type ManagedTransactionRow = RowOf<typeof transactionTables.managed_transaction>

const hex = (bytes: Buffer): string => `0x${bytes.toString('hex')}`

/** The record of spec 2.9, as operations return it and notifications tell it. */
export const toTransactionRecord = (row: ManagedTransactionRow) => ({
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
})
