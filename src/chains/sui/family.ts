import { decodeBase58, encodeBase58 } from '../../lib/base58.ts'
import type { Family, Parsed } from '../chain.ts'
import { parsed, refused, toHex } from '../hex.ts'
import { formatCoinType, parseCoinType } from './coin-type.ts'

const address = /^0x([0-9a-fA-F]{1,64})$/

/** Reads `0x` and 1 to 64 hex digits; short ones are padded with zeros on the left (Sui's own rule). */
const parseAddress = (text: string): Parsed => {
  const digits = address.exec(text)?.[1]
  return digits === undefined
    ? refused('Must be 0x and 1 to 64 hex digits.')
    : parsed(Buffer.from(digits.padStart(64, '0'), 'hex'))
}

const parseDigest = (text: string): Buffer | undefined => {
  // 32 bytes have 32 to 44 digits; a longer text need not be looked at.
  const bytes = text.length <= 44 ? decodeBase58(text) : undefined
  return bytes?.length === 32 ? bytes : undefined
}

/** The rules of variant S. */
export const suiFamily: Family<'s'> = {
  service: 's',
  native: { asset_type: 'ASSET_TYPE_S', contract_address: Buffer.alloc(0), token_id: 0n },
  reorganizes: false,
  balances: 'delta',
  parseAddress,
  formatAddress: toHex,
  parseToken: parseCoinType,
  formatToken: formatCoinType,
  parseTransactionHash: parseDigest,
  formatTransactionHash: encodeBase58,
  transactionField: 'transaction_digest',
  presentTransfer: (view) => ({
    transaction_digest: encodeBase58(view.transaction_hash),
    asset_type: view.asset.asset_type,
    from: toHex(view.from),
    to: toHex(view.to),
    value: view.value.toString(),
    transaction_fee: view.transaction_fee.toString(),
    block_number: view.block_number,
    position: view.ordinal,
    status: view.transfer_state === 'TRANSFER_STATE_FAILED' ? 'failure' : 'success',
    token_address: formatCoinType(view.asset.contract_address),
  }),
  // A transaction is in one checkpoint, and checkpoints are final.
  transferKey: ({ transaction_hash, ordinal }) => [transaction_hash, ordinal],
  paysFee: ({ side, detail }) => side === 0 && detail?.pays_fee === true,
  presentAsset: (view) => ({
    wallet_id: view.wallet_id,
    address: toHex(view.address ?? Buffer.alloc(0)),
    asset_type: view.asset.asset_type,
    balance: view.balance.toString(),
    token_address: formatCoinType(view.asset.contract_address),
  }),
}
