import { OperationError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { findTransaction } from '../../storage/transactions/transactions.ts'
import type { WalletHandler } from '../context.ts'
import { readScope } from '../wallets/scope.ts'
import { moveTransaction } from './move.ts'
import { fieldsOf, forbidden, signingOf, withTransaction } from './scope.ts'

/** Takes the signature of a transaction; from then on its bytes and its hash are fixed. */
export const SubmitTransactionSignature: WalletHandler<'SubmitTransactionSignature'> = async (
  context,
  { transaction_id, signature },
) => {
  const scope = await readScope(context)
  const found = await findTransaction(context.db, scope, transaction_id)
  if (!found) throw new OperationError('TRANSACTION_NOT_FOUND')
  // What is signed never changes: it can be checked before the row is locked.
  const signed = await signingOf(scope.family).sign(fieldsOf(found), signature)
  if (!signed.ok)
    throw invalidRequest([
      { field: 'signature', reason: 'INVALID_SIGNATURE', detail: signed.detail },
    ])
  const { raw, hash } = signed
  await withTransaction(context, scope, transaction_id, async (trx, row, now) => {
    if (
      // The same signature again, in whatever form it was written, changes nothing.
      row.transaction_hash?.equals(hash) &&
      row.transaction_state !== 'TRANSACTION_STATE_CANCELED'
    )
      return row
    if (
      row.transaction_state !== 'TRANSACTION_STATE_CREATED' &&
      row.transaction_state !== 'TRANSACTION_STATE_SIGNED'
    )
      throw forbidden(row, 'SubmitTransactionSignature')
    return await moveTransaction(trx, row, {
      event: 'sign',
      now,
      change: {
        signature: Buffer.from(signature.replace(/^0x/i, ''), 'hex'),
        raw_transaction: raw,
        transaction_hash: hash,
        last_error: null,
      },
    })
  })
  return {}
}
