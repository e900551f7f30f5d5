import type { TransactionFields } from '../../chains/sending.ts'
import type { TransactionRow } from '../../storage/transactions/transactions.ts'

/** What is signed of a transaction. */
export const fieldsOf = (row: TransactionRow): TransactionFields => {
  const { from, to, value, gas, gas_price, data, nonce, eip155_chain_id } = row
  return { from, to, value, gas, gas_price, data, nonce, chain_id: eip155_chain_id }
}
