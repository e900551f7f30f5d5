import { toHex } from '../../chains/hex.ts'
import type { TransactionFields } from '../../chains/sending.ts'
import type { TransactionState } from '../../contract/states.ts'
import type { TransactionRow } from '../../storage/transactions.ts'

/** After that long on its way without a block a transaction is shown as stuck (docs/decisions.md). */
export const stuckAfterMs = 10 * 60_000

const onTheWay: readonly TransactionState[] = [
  'TRANSACTION_STATE_SENDING',
  'TRANSACTION_STATE_SENT',
]

/** Whether a transaction is on its way and on no block. */
export const isOnTheWay = ({ transaction_state }: TransactionRow): boolean =>
  onTheWay.includes(transaction_state)

/** The record of spec 2.9. */
export const presentTransaction = (row: TransactionRow, now: number) => ({
  wallet_id: row.wallet_id,
  transaction_id: row.transaction_id,
  transaction_hash: row.transaction_hash ? toHex(row.transaction_hash) : '',
  transaction_state: row.transaction_state,
  from: toHex(row.from),
  to: toHex(row.to),
  value: row.value.toString(),
  gas: row.gas.toString(),
  gas_price: row.gas_price.toString(),
  data: `0x${row.data.toString('hex')}`,
  nonce: String(row.nonce),
  stuck: isOnTheWay(row) && row.sent_time !== null && now - row.sent_time.getTime() >= stuckAfterMs,
  last_error: row.last_error ?? '',
  replaced_by:
    row.transaction_state === 'TRANSACTION_STATE_REPLACED' && row.replaced_by
      ? toHex(row.replaced_by)
      : '',
})

/** What is signed of it. */
export const fieldsOf = (row: TransactionRow): TransactionFields => {
  const { from, to, value, gas, gas_price, data, nonce, eip155_chain_id } = row
  return { from, to, value, gas, gas_price, data, nonce, eip155_chain_id }
}
