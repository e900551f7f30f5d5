// Lists stored transfers. Pages go by time, block order and side; these never change for a stored transfer, so that a page
// token stays valid while new transfers arrive at the other end.

import { OperationError } from '../../contract/errors/errors.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import {
  listTransactionTransfers,
  listWalletTransfers,
  type TransferPosition,
} from '../../storage/transfers/transfers.ts'
import { findOwners } from '../../storage/wallets/addresses.ts'
import type { WalletHandler } from '../context.ts'
import { makePage, readPage } from '../pages.ts'
import { readTransaction } from '../read-transaction.ts'
import { readTimes } from '../time-range.ts'
import { readOptionalAddress } from './address-fields.ts'
import { getWalletOfHistory, readScope } from './scope.ts'
import { presentTransfer } from './transfer-view.ts'

type Position = [time: number, number: number, ordinal: number, side: number]

/** Lists transfers, newest first. */
export const ListTransfers: WalletHandler<'ListTransfers'> = async (context, request) => {
  const scope = await readScope(context)
  const { limit, after } = readPage<Position>(context, request)
  const times = readTimes(request)
  const transaction_hash = readTransaction(scope.family, request)
  const address = readOptionalAddress(scope.family, request.address)
  const wallet = request.wallet_id && (await getWalletOfHistory(context, scope, request.wallet_id))
  const wallet_id = wallet
    ? wallet.wallet_id
    : address && (await findOwners(context.db, scope, [address]))[0]?.wallet_id
  if (address && !wallet_id) throw new OperationError('ADDRESS_NOT_FOUND')
  // One more than the page has shows whether there is a next one.
  const page = { limit: limit + 1, after: after && toPosition(after) }
  const filter = { address, transaction_hash, ...times }
  // A wallet has its own index; a transaction hash alone is searched in all wallets of the
  // organization.
  const rows = wallet_id
    ? await listWalletTransfers(context.db, scope, { ...filter, wallet_id }, page)
    : await listTransactionTransfers(
        context.db,
        scope,
        { ...filter, transaction_hash: transaction_hash! },
        page,
      )
  // Read after the rows, so that no row is of a block above it.
  const head = (await findCursor(context.db, scope.network_id))?.block_number ?? 0
  const { items, pagination } = makePage(
    context,
    request,
    rows,
    (row): Position => [row.block_time.getTime(), row.block_number, row.ordinal, row.side],
    (row) => row.is_beyond === true,
  )
  const transfers = items.map((row) => presentTransfer(scope.family, row, head))
  return { transfers, pagination }
}

const toPosition = ([time, block_number, ordinal, side]: Position): TransferPosition => ({
  block_time: new Date(time),
  block_number,
  ordinal,
  side,
})
