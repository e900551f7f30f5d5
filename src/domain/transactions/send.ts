import { OperationError } from '../../contract/errors.ts'
import { toTransactionRecord } from '../../storage/transaction-record.ts'
import { shared } from '../wallets/scope.ts'
import { type Attempt, beginAttempt, settleAttempt } from './attempt.ts'
import { forbidden, sendingScope, withTransaction } from './scope.ts'

/**
 * Sends a signed transaction. What is on its way already is answered as it stands: the sender looks
 * after it. From the write-ahead on nothing depends on the caller, who may hang up.
 */
export const SendTransaction = shared<{ transaction_id: string }>(
  async (context, { transaction_id }) => {
    const scope = sendingScope(context)
    let attempt: Attempt | undefined
    const row = await withTransaction(context, scope, transaction_id, async (trx, row, now) => {
      switch (row.transaction_state) {
        case 'TRANSACTION_STATE_CREATED':
        case 'TRANSACTION_STATE_CANCELED':
          throw forbidden(row, 'SendTransaction')
        case 'TRANSACTION_STATE_SIGNED':
          attempt = await beginAttempt(trx, row, now)
          return attempt.row
        default:
          return row
      }
    })
    const present = (one: typeof row) => ({
      transaction: toTransactionRecord(one, new Date(context.clock.now())),
    })
    if (!attempt) return present(row)
    const handover = await scope.sending.broadcast(attempt.raw, attempt.hash)
    const settled = await settleAttempt(context, attempt, handover)
    if (settled.transaction_state === 'TRANSACTION_STATE_SIGNED')
      throw new OperationError('TRANSACTION_REFUSED', {
        detail: `The nodes say: ${settled.last_error}.`,
      })
    return present(settled)
  },
)
