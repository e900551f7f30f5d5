// Reads managed transactions. All of them come from rows, none from nodes: a state is what the service has stored and
// notified, so that reads and webhooks never disagree.

import { toHex } from '../../chains/hex.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import { toTransactionRecord } from '../../storage/transactions/record.ts'
import {
  findTransaction,
  findTransactionByHash,
  listTransactions,
  type TransactionRow,
} from '../../storage/transactions/transactions.ts'
import { findOwners } from '../../storage/wallets/addresses.ts'
import type { Context, WalletHandler } from '../context.ts'
import { makePage, readPage } from '../pages.ts'
import { readOptionalAddress } from '../wallets/address-fields.ts'
import { getWalletOfHistory, type ReadScope, readScope } from '../wallets/scope.ts'
import { fieldsOf, signingOf } from './scope.ts'

/** Reads a managed transaction by its id, its hash, or both, which must then agree. */
export const GetTransaction: WalletHandler<'GetTransaction'> = async (
  context,
  { transaction_id, transaction_hash },
) => {
  const scope = await readScope(context)
  const hash =
    transaction_hash === undefined ? undefined : scope.family.parseTransactionHash(transaction_hash)
  const row =
    transaction_id === undefined
      ? hash && (await findTransactionByHash(context.db, scope, hash))
      : await findTransaction(context.db, scope, transaction_id)
  if (!row || (hash && !row.transaction_hash?.equals(hash)))
    throw new OperationError('TRANSACTION_NOT_FOUND')
  return { transaction: toTransactionRecord(row, new Date(context.clock.now())) }
}

/** The 32-byte hash that the sender signs. */
export const GetTransactionMessageToSign: WalletHandler<'GetTransactionMessageToSign'> = async (
  context,
  { transaction_id },
) => {
  const scope = await readScope(context)
  // Computed again from the row instead of stored: it depends on nothing else.
  const row = await getTransaction(context, scope, transaction_id)
  return { transaction_message_to_sign: toHex(signingOf(scope.family).signingHash(fieldsOf(row))) }
}

// The id decides between transactions of the same millisecond.
type Position = [time: number, transaction_id: string]

/** Lists managed transactions, newest first. */
export const ListTransactions: WalletHandler<'ListTransactions'> = async (context, request) => {
  const scope = await readScope(context)
  const { limit, after } = readPage<Position>(context, request)
  const from = readOptionalAddress(scope.family, request.address)
  const wallet = request.wallet_id && (await getWalletOfHistory(context, scope, request.wallet_id))
  const rows = await listTransactions(
    context.db,
    scope,
    {
      from,
      wallet_id: wallet ? wallet.wallet_id : undefined,
      transaction_state: request.transaction_state,
    },
    {
      limit: limit + 1,
      after: after && { create_time: new Date(after[0]), transaction_id: after[1] },
    },
  )
  // A typing error must not look like "nothing sent"; a removed address keeps its transactions.
  if (rows.length === 0 && from && !wallet && !(await findOwners(context.db, scope, [from]))[0])
    throw new OperationError('ADDRESS_NOT_FOUND')
  const { items, pagination } = makePage(
    context,
    request,
    rows,
    (row): Position => [row.create_time.getTime(), row.transaction_id],
    ({ is_beyond }) => is_beyond,
  )
  const now = new Date(context.clock.now())
  return { transactions: items.map((row) => toTransactionRecord(row, now)), pagination }
}

async function getTransaction(
  { db }: Context,
  scope: ReadScope,
  transaction_id: string,
): Promise<TransactionRow> {
  const row = await findTransaction(db, scope, transaction_id)
  if (!row) throw new OperationError('TRANSACTION_NOT_FOUND')
  return row
}
