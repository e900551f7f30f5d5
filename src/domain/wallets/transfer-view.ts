import type { Family, TransferView } from '../../chains/chain.ts'
import type { WalletAnswer } from '../../contract/operations/calls.ts'
import type { TransferDirection } from '../../contract/records/states.ts'
import { hashId } from '../../lib/hash-id.ts'
import type { ListedTransfer } from '../../storage/transfers/transfers.ts'

/** How many blocks from this one to the head, itself included (docs/decisions/transfers.md). */
export const confirmationsOf = (block_number: number, head: number): number =>
  Math.max(0, head - block_number + 1)

/** The first head at which a block has that many confirmations; 0 and 1 both mean at inclusion. */
export const dueBlockOf = (block_number: number, confirmation: number): number =>
  block_number + Math.max(confirmation, 1) - 1

/** Whether a transfer waits for the confirmation of its wallet. What was confirmed once stays so. */
const isPending = (
  row: Pick<ListedTransfer, 'transfer_state' | 'block_number' | 'confirmation' | 'confirmed_block'>,
  head: number,
): boolean =>
  row.transfer_state === 'TRANSFER_STATE_SUCCESS' &&
  head < dueBlockOf(row.block_number, row.confirmation) &&
  row.block_number > (row.confirmed_block ?? -1)

/** A transfer as lists and notifications show it, with the fields of every variant. */
export type TransferRecord = WalletAnswer<'ListTransfers'>['transfers'][number]

/** The record of a transfer, the same in lists and notifications (docs/webhooks.md). */
export const presentTransfer = (
  family: Family,
  row: ListedTransfer,
  head: number,
): TransferRecord => {
  // The head decides between pending and confirmed, so that no row has to be updated when a block
  // is confirmed.
  const view = toTransferView(row, head)
  return {
    wallet_id: row.wallet_id,
    ...family.presentTransfer(view),
    // Derived, so that a transfer keeps its id when its block is stored again.
    transfer_id: hashId('transfer', family.service, ...family.transferKey(view)),
    direction: directionOf(row),
    fee_paid: family.paysFee(view) ? row.transaction_fee.toString() : '0',
    transfer_time: row.block_time.toISOString(),
  }
}

const directionOf = ({ is_internal, side }: ListedTransfer): TransferDirection => {
  if (is_internal) return 'TRANSFER_DIRECTION_INTERNAL'
  return side === 0 ? 'TRANSFER_DIRECTION_OUTGOING' : 'TRANSFER_DIRECTION_INCOMING'
}

/** A stored transfer as the chain prints it. Whether it is pending follows from the head. */
const toTransferView = (row: ListedTransfer, head: number): TransferView => {
  const { asset_type, contract_address, token_id, name, symbol, decimals } = row
  const pending = isPending(row, head)
  return {
    transaction_hash: row.transaction_hash,
    asset: {
      asset_type,
      contract_address,
      token_id,
      name,
      symbol,
      decimals,
      token_uri: row.token_uri,
      token_data: row.token_data,
      token_uri_omitted: row.token_uri_omitted === true,
      token_data_omitted: row.token_data_omitted === true,
    },
    address: row.address,
    side: row.side,
    from: row.from,
    to: row.to,
    value: row.value,
    transaction_fee: row.transaction_fee,
    transfer_state: pending ? 'TRANSFER_STATE_PENDING' : row.transfer_state,
    block_number: row.block_number,
    ordinal: row.ordinal,
    external_hash: row.external_hash,
    block_time: row.block_time,
    transfer_hash: row.transfer_hash,
    detail: row.detail as Record<string, unknown> | null,
  }
}
