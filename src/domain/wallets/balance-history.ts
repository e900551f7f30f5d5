// The history of a balance is computed backwards from the present one by the stored transfers (docs/webhooks.md has the
// rule by which records and fees add up). Transfers that the present balance does not include yet are left out.

import { sumBalance } from '../../storage/balances/balances.ts'
import {
  type ListedTransfer,
  listWalletTransfers,
  type TransferPosition,
} from '../../storage/transfers/transfers.ts'
import { assetIdOf } from '../../storage/wallets/assets.ts'
import type { WalletHandler } from '../context.ts'
import { readPage, sealPosition } from '../pages.ts'
import { readAddress, readToken } from './address-fields.ts'
import { readHolder, readScope } from './scope.ts'
import { presentTransfer, type TransferRecord } from './transfer-view.ts'

/** Where a page ends: the transfer, and the balance before it. */
type Position = [time: number, number: number, ordinal: number, side: number, balance: string]

/** Lists the balance of an asset after each of its transfers, newest first. */
export const ListBalanceHistory: WalletHandler<'ListBalanceHistory'> = async (context, request) => {
  const scope = await readScope(context)
  const { family, network_id } = scope
  const { limit, after } = readPage<Position>(context, request)
  // The contract requires a wallet or an address.
  const { wallet_id = '', address } = await readHolder(context, scope, request)
  const contract_address =
    request.contract_address === undefined
      ? readToken(family, request.token_address)
      : readAddress(family, request.contract_address, 'contract_address')
  const asset_id = assetIdOf(network_id, {
    asset_type: request.asset_type,
    contract_address: contract_address ?? family.native.contract_address,
    token_id: BigInt(request.token_id ?? 0),
  })
  const isNative = asset_id === assetIdOf(network_id, family.native)
  const filter = { wallet_id, asset_id, ...(address && { address }) }

  // In one view of the database: a balance and the transfers that it includes.
  const { rows, sum, asOf } = await context.db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (trx) => {
      const place = { limit: limit + 1, after: after && toPosition(after) }
      const found = await listWalletTransfers(trx, scope, filter, place)
      const holders = new Map(found.map((row) => [row.address.toString('hex'), row.address]))
      return { rows: found, ...(await sumBalance(trx, scope, filter, [...holders.values()])) }
    })
  // From the newest balance backwards: each step takes the change of one transfer off. The token
  // carries the balance to the next page.
  let balance = after ? BigInt(after[4]) : sum
  const items = rows.slice(0, limit)
  const points = items.flatMap((row) => {
    // The balance was read before the block of the transfer, or waits for its confirmation.
    if (row.block_number > (asOf.get(row.address.toString('hex')) ?? -1)) return []
    const record = presentTransfer(family, row, row.block_number + row.confirmation)
    const change = changeOf(record, isNative)
    const point = {
      transfer_id: record.transfer_id,
      transfer_time: record.transfer_time,
      block_number: `${row.block_number}`,
      change: `${change}`,
      balance: `${balance}`,
    }
    balance -= change
    return [point]
  })
  const last = items.at(-1)
  const next_page_token =
    last && rows.length > limit ? sealPosition(context, request, toToken(last, balance)) : ''
  return { points, pagination: { next_page_token } }
}

const toToken = (
  { block_time, block_number, ordinal, side }: ListedTransfer,
  balance: bigint,
): Position => [block_time.getTime(), block_number, ordinal, side, `${balance}`]

const signs: Readonly<Record<string, bigint>> = {
  TRANSFER_DIRECTION_INCOMING: 1n,
  TRANSFER_DIRECTION_OUTGOING: -1n,
}

/** The rule of docs/webhooks.md: values count by their direction, fees always, values of failed transfers never. */
function changeOf(
  { direction, value, fee_paid, ...record }: TransferRecord,
  isNative: boolean,
): bigint {
  const isFailed = 'transfer_state' in record && record.transfer_state === 'TRANSFER_STATE_FAILED'
  const moved = isFailed ? 0n : (signs[direction] ?? 0n) * BigInt(value)
  return isNative ? moved - BigInt(fee_paid) : moved
}

const toPosition = ([time, block_number, ordinal, side]: Position): TransferPosition => ({
  block_time: new Date(time),
  block_number,
  ordinal,
  side,
})
