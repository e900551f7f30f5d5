import { toHex } from '../../chains/hex.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { TransactionRow } from '../../storage/transactions/transactions.ts'
import type { WalletHandler } from '../context.ts'
import { readScope } from '../wallets/scope.ts'
import { moveTransaction } from './move.ts'
import { raisedPrice } from './nonce.ts'
import { forbidden, withTransaction } from './scope.ts'

/** Cancels a transaction that no node has got; its nonce is free again, its signature is erased. */
export const CancelTransaction: WalletHandler<'CancelTransaction'> = async (
  context,
  { transaction_id },
) => {
  const scope = await readScope(context)
  await withTransaction(context, scope, transaction_id, async (trx, row, now) => {
    switch (row.transaction_state) {
      case 'TRANSACTION_STATE_CANCELED':
        return row
      case 'TRANSACTION_STATE_CREATED':
      case 'TRANSACTION_STATE_SIGNED':
        return await moveTransaction(trx, row, {
          event: 'cancel',
          now,
          // Erased, so that the signed bytes cannot be sent any more.
          change: { signature: null, raw_transaction: null, last_error: null },
        })
      // Also while no node has answered: a request without an answer may have arrived.
      case 'TRANSACTION_STATE_SENDING':
      case 'TRANSACTION_STATE_SENT':
        throw alreadyBroadcast(row)
      default:
        throw forbidden(row, 'CancelTransaction')
    }
  })
  return {}
}

const alreadyBroadcast = (row: TransactionRow): OperationError => {
  // The text has all that the caller needs, because time counts here: the other transaction may be mined any moment.
  const from = toHex(row.from)
  const price = raisedPrice(row.gas_price)
  return new OperationError('TRANSACTION_ALREADY_BROADCAST', {
    detail: `A node may have it. To take its place: CreateTransaction with from ${from}, to ${from}, value 0, nonce ${row.nonce} and gas_price ${price} or more, then sign and send that one.`,
    extra: { transaction_state: row.transaction_state },
  })
}
