import type { Family, TransferView } from '../chain.ts'
import { parseHexHash, toHex } from '../hex.ts'
import { formatAddress, parseAddress } from './address.ts'
import type { Explanation } from './explain.ts'
import { formatToken, parseToken } from './token.ts'

/**
 * The rules of variant P; addresses are printed with the SS58 prefix of the chain (Polkadot: 0), which
 * may be known only when a node has said it.
 */
export const createPolkadotFamily = ({
  ss58_prefix = 0,
}: {
  ss58_prefix?: number | (() => number)
} = {}): Family<'p'> => {
  const prefix = typeof ss58_prefix === 'number' ? () => ss58_prefix : ss58_prefix
  const format = (address: Uint8Array) => formatAddress(address, prefix())
  return {
    service: 'p',
    native: { asset_type: 'ASSET_TYPE_P', contract_address: Buffer.alloc(0), token_id: 0n },
    reorganizes: false,
    balances: 'read',
    changesSilently: 'coin',
    parseAddress,
    formatAddress: format,
    parseToken,
    formatToken,
    parseTransactionHash: parseHexHash,
    formatTransactionHash: toHex,
    transactionField: 'transaction_hash',
    presentTransfer: (view) => ({
      transaction_hash: toHex(view.transaction_hash),
      asset_type: view.asset.asset_type,
      from: format(view.from),
      to: format(view.to),
      value: view.value.toString(),
      transaction_fee: view.transaction_fee.toString(),
      block_height: view.block_number,
      block_number: view.block_number,
      position: view.ordinal,
      block_timestamp: Math.floor(view.block_time.getTime() / 1000),
      token_address: formatToken(view.asset.contract_address),
      ...detailOf(view),
    }),
    // Blocks are final, and an extrinsic may be included again after its account was reaped.
    transferKey: ({ transaction_hash, block_number, ordinal }) => [
      transaction_hash,
      block_number,
      ordinal,
    ],
    paysFee: ({ side, detail }) => side === 0 && detail?.pays_fee === true,
    presentAsset: (view) => ({
      wallet_id: view.wallet_id,
      address: format(view.address ?? Buffer.alloc(0)),
      asset_type: view.asset.asset_type,
      balance: view.balance.toString(),
      token_address: formatToken(view.asset.contract_address),
    }),
  }
}

/** What a movement was that is no plain transfer. */
function detailOf({ detail }: TransferView): { detail?: Explanation } {
  if (typeof detail?.event !== 'string') return {}
  const { source, event, pallet, xcm_message_id } = detail as Explanation
  return { detail: { source, event, pallet, ...(xcm_message_id && { xcm_message_id }) } }
}
