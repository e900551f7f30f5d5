import { OperationError } from '../../contract/errors/errors.ts'
import { hasUnsentBelow } from '../../storage/transactions/nonces.ts'
import { toTransactionRecord } from '../../storage/transactions/record.ts'
import type { TransactionRow } from '../../storage/transactions/transactions.ts'
import type { Context, WalletHandler } from '../context.ts'
import { type Attempt, beginAttempt, settleAttempt } from './attempt.ts'
import { forbidden, type SendingScope, sendingScope, withTransaction } from './scope.ts'
import { explainWait } from './wait.ts'

const explainMs = 2_000

/**
 * Sends a signed transaction. What is on its way already is answered as it stands: the sender looks
 * after it. After the write-ahead nothing depends on the caller, which may disconnect.
 */
export const SendTransaction: WalletHandler<'SendTransaction'> = async (
  context,
  { transaction_id },
) => {
  const scope = await sendingScope(context)
  let attempt: Attempt | undefined
  const row = await withTransaction(context, scope, transaction_id, async (trx, row, now) => {
    switch (row.transaction_state) {
      case 'TRANSACTION_STATE_CREATED':
      case 'TRANSACTION_STATE_CANCELED':
        throw forbidden(row, 'SendTransaction')
      case 'TRANSACTION_STATE_SIGNED':
        attempt = await beginAttempt(trx, row, now)
        return attempt.row
      // It is on its way or ended. Sending again is the sender's task, with its own pauses.
      default:
        return row
    }
  })
  const present = (one: typeof row) => ({
    transaction: toTransactionRecord(one, new Date(context.clock.now())),
  })
  if (!attempt) return present(row)
  const handover = await scope.sending.broadcast(attempt.raw, attempt.hash)
  const waitsFor =
    handover.kind === 'accepted' ? await findWait(context, scope, attempt.row) : undefined
  const settled = await settleAttempt(context, attempt, handover, waitsFor)
  if (settled.transaction_state === 'TRANSACTION_STATE_SIGNED')
    throw new OperationError('TRANSACTION_REFUSED', {
      detail: `The nodes say: ${settled.last_error}.`,
    })
  return present(settled)
}

/** Says at once that an earlier transaction was forgotten; the sender looks for every other reason. */
async function findWait(
  { db, clock }: Context,
  { sending }: SendingScope,
  row: TransactionRow,
): Promise<string | undefined> {
  try {
    if (!(await hasUnsentBelow(db, row, row.nonce))) return undefined
    // Not the caller's signal: the outcome is recorded even if the caller disconnects.
    const signal = AbortSignal.timeout(explainMs)
    return await explainWait({ db, sending }, row, new Date(clock.now()), signal)
  } catch {
    return undefined
  }
}
