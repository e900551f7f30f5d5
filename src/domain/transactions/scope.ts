import type { Family } from '../../chains/chain.ts'
import type { Sending, Signing, TransactionFields } from '../../chains/sending.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { Db } from '../../storage/pg/database.ts'
import { lockTransaction, type TransactionRow } from '../../storage/transactions/transactions.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import { notifyOfStates } from '../../storage/webhooks/state-notifications.ts'
import type { Context } from '../context.ts'
import { chainScope } from '../wallets/scope.ts'

/** Where transactions are sent. */
export type SendingScope = WalletScope & { family: Family; signing: Signing; sending: Sending }

/** The chain that transactions go to; refused where it is not configured. */
export async function sendingScope(context: Context): Promise<SendingScope> {
  const { organization_id, network_id, family, chain } = await chainScope(context)
  const { sending } = chain
  if (!sending) throw new OperationError('CHAIN_NOT_CONFIGURED')
  return { organization_id, network_id, family, signing: signingOf(family), sending }
}

/** The signing rules of a family. Only services whose family has them offer managed transactions. */
export function signingOf({ signing }: Family): Signing {
  if (!signing) throw new OperationError('NOT_IMPLEMENTED')
  return signing
}

/**
 * Works on one transaction of the caller alone, and queues notifications if its state changes. It
 * locks this one row and then webhooks, an order that the tracker keeps as well. The cursor is not
 * locked: users must neither wait for a block that is being stored nor keep one waiting.
 */
export async function withTransaction(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  scope: WalletScope,
  transaction_id: string,
  work: (trx: Db, row: TransactionRow, now: Date) => Promise<TransactionRow>,
): Promise<TransactionRow> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockTransaction(trx, scope, transaction_id)
    if (!row) throw new OperationError('TRANSACTION_NOT_FOUND')
    const now = new Date(clock.now())
    const after = await work(trx, row, now)
    if (after.transaction_state !== row.transaction_state) await notifyOfStates(trx, [after], now)
    return after
  })
}

/** The refusal of an operation that the state forbids. */
export const forbidden = (row: TransactionRow, operation: string): OperationError =>
  new OperationError('TRANSACTION_STATE_INVALID', {
    detail: `${operation} is not possible in ${row.transaction_state}.`,
    extra: { transaction_state: row.transaction_state },
  })

/** What is signed of a transaction. */
export const fieldsOf = (row: TransactionRow): TransactionFields => {
  const { from, to, value, gas, gas_price, data, nonce, eip155_chain_id } = row
  return { from, to, value, gas, gas_price, data, nonce, chain_id: eip155_chain_id }
}
