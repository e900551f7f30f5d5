// Pending transactions are records of this service: nodes forget them without notice, so what one of them has shown is
// stored (`workers/pending`) and read from there.

import { type RawFields, toPendingTransaction } from '../../chains/evm/block/records.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { findPending, listPending } from '../../storage/transactions/pending.ts'
import type { QueryHandler } from '../context.ts'
import { presented, readPlaced } from './read.ts'
import { sourceOf } from './source.ts'

type PendingTransaction = ReturnType<typeof toPendingTransaction> & { record_time: string }

/** More than any node holds of one sender. */
const longestList = 10_000

/** Reads a transaction that is pending, or was until less than a day ago. */
export const GetPendingTransaction: QueryHandler<'GetPendingTransaction'> = async (
  context,
  { transaction_hash },
) => {
  const source = sourceOf(context)
  const row = await findPending(context.db, source.network_id, {
    transaction_hash: Buffer.from(transaction_hash.slice(2), 'hex'),
    now: context.clock.now(),
  })
  if (row) return { pending_transaction: present(row.detail as RawFields, row.record_time) }
  // Not recorded yet: a node may have it although it did not announce it.
  const placed = await readPlaced(context, 'getTransactionByHash', transaction_hash)
  if (placed.kind === 'pending') {
    const now = context.clock.now()
    await source.seePending([placed.raw])
    return { pending_transaction: present(placed.raw, now) }
  }
  throw new OperationError(
    'PENDING_TRANSACTION_NOT_FOUND',
    placed.kind === 'mined'
      ? { detail: 'The transaction is in a block. Read it with GetTransaction.' }
      : {},
  )
}

/** Lists what is pending of a sender, by nonce. */
export const ListPendingTransactions: QueryHandler<'ListPendingTransactions'> = async (
  context,
  { from, nonce },
) => {
  const source = sourceOf(context)
  // The nodes are asked first: the record may lack what none of them has announced.
  await source.seePending(await source.pendingOf(from, context.signal))
  const rows = await listPending(context.db, source.network_id, {
    from: Buffer.from(from.slice(2), 'hex'),
    nonce,
    limit: longestList,
  })
  return {
    pending_transactions: rows.map(({ detail, record_time }) =>
      present(detail as RawFields, record_time),
    ),
  }
}

const present = (raw: RawFields, time: Date | number): PendingTransaction => ({
  ...presented(() => toPendingTransaction(raw)),
  record_time: toTimestamp(time),
})
