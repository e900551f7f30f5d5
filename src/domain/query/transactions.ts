import {
  lacksPrice,
  type RawFields,
  toLogs,
  toReceipt,
  toTransaction,
} from '../../chains/evm/block/records.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { Context, QueryHandler } from '../context.ts'
import { type Placed, presented, readPlaced } from './read.ts'

/** Reads a transaction that is in a block. */
export const GetTransaction: QueryHandler<'GetTransaction'> = async (
  context,
  { transaction_hash },
) => {
  const raw = mined(await readPlaced(context, 'getTransactionByHash', transaction_hash))
  return { transaction: presented(() => toTransaction(raw)) }
}

/** Reads many transactions in the order of the request; what is in no block is left out. */
export const ListTransactions: QueryHandler<'ListTransactions'> = async (
  context,
  { transaction_hashes },
) => {
  // All in one turn: the pool makes one batch of them.
  const found = await Promise.all(
    transaction_hashes.map((hash) => readPlaced(context, 'getTransactionByHash', hash)),
  )
  return {
    transactions: found.flatMap((placed) =>
      placed.kind === 'mined' ? [presented(() => toTransaction(placed.raw))] : [],
    ),
  }
}

/** Reads the receipt of a transaction. */
export const GetTransactionReceipt: QueryHandler<'GetTransactionReceipt'> = async (
  context,
  { transaction_hash },
) => {
  const raw = await readReceipt(context, transaction_hash)
  if (!presented(() => lacksPrice(raw)))
    return { transaction_receipt: presented(() => toReceipt(raw)) }
  const placed = await readPlaced(context, 'getTransactionByHash', transaction_hash)
  const price = mined(placed).gasPrice
  return { transaction_receipt: presented(() => toReceipt(raw, BigInt(String(price ?? '0x0')))) }
}

/** Lists the logs of a transaction. */
export const ListLogs: QueryHandler<'ListLogs'> = async (context, { transaction_hash }) => {
  const receipt = await readReceipt(context, transaction_hash)
  return { logs: presented(() => toLogs(receipt)) }
}

/** The receipt as the node gave it. */
async function readReceipt(context: Context, transaction_hash: string): Promise<RawFields> {
  return mined(await readPlaced(context, 'getTransactionReceipt', transaction_hash))
}

/** What is in a block; for a transaction outside of blocks the error names the operation to use. */
function mined(placed: Placed): RawFields {
  if (placed.kind === 'mined') return placed.raw
  throw new OperationError(
    'TRANSACTION_NOT_FOUND',
    placed.kind === 'pending'
      ? { detail: 'The transaction is pending. Read it with GetPendingTransaction.' }
      : {},
  )
}
