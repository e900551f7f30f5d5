// The rules of variant C that need no node: addresses, assets, records and signing. They also serve chains that are stored
// and not configured any more.

import type { ContractType } from '../../contract/records/assets.ts'
import type { PresentedAsset } from '../../contract/records/presented.ts'
import type { AssetView, Family, Parsed, TokenStandard } from '../chain.ts'
import { parsed, parseEvmPattern, parseHexHash, refused, toHex } from '../hex.ts'
import type { Signing } from '../sending.ts'
import { placesPerTransaction, valuePlace } from './block/native.ts'
import { encodeCall } from './codec/abi.ts'
import { signedTransaction, signingHash } from './codec/legacy-transaction.ts'
import { bytesOf } from './codec/raw.ts'
import { readSignature } from './codec/signature.ts'

/** Reads an address: exactly the pattern of spec 2, so that one account has one text. */
const parseAddress = (text: string): Parsed => {
  const bytes = parseEvmPattern(text)
  if (bytes) return parsed(bytes)
  const lower = text.toLowerCase()
  return parseEvmPattern(lower)
    ? refused(`Must be in lower case: ${lower}`)
    : refused('Must be 0x and 40 lower-case hex digits.')
}

/** The sub-object of spec 2.6 that belongs to the asset's standard; none for the native coin. */
const presentMetadata = (asset: AssetView): PresentedAsset<'c'>['asset_metadata'] => {
  const contract_address = toHex(asset.contract_address)
  const name = asset.name ?? ''
  const symbol = asset.symbol ?? ''
  const token = {
    token_id: asset.token_id.toString(),
    token_uri: asset.token_uri ?? '',
    token_data: asset.token_data ?? '',
    ...(asset.token_uri_omitted && { token_uri_omitted: true }),
    ...(asset.token_data_omitted && { token_data_omitted: true }),
  }
  switch (asset.asset_type) {
    case 'ASSET_TYPE_ERC20':
      // Without decimals() the decimal point is unknown: 0 would be a guess about money.
      return {
        erc20: {
          contract_address,
          name,
          symbol,
          ...(asset.decimals !== null && { decimals: asset.decimals }),
        },
      }
    case 'ASSET_TYPE_ERC721':
      return { erc721: { contract_address, name, symbol, ...token } }
    case 'ASSET_TYPE_ERC1155':
      return { erc1155: { contract_address, ...token } }
    default:
      return {}
  }
}

const standards: Readonly<Record<ContractType, TokenStandard>> = {
  CONTRACT_TYPE_ERC20: { asset_type: 'ASSET_TYPE_ERC20', key: 'erc20', isCollection: false },
  CONTRACT_TYPE_ERC721: { asset_type: 'ASSET_TYPE_ERC721', key: 'erc721', isCollection: true },
  CONTRACT_TYPE_ERC1155: { asset_type: 'ASSET_TYPE_ERC1155', key: 'erc1155', isCollection: true },
}

/** The rules of signed transactions of the family. */
const evmSigning: Signing = {
  signingHash,
  sign: async (fields, signature) => {
    const read = await readSignature(signature, fields)
    return read.ok ? { ok: true, ...signedTransaction(fields, read.signature) } : read
  },
  // `safeTransferFrom` fails where the receiving contract cannot handle the item; `transferFrom` would lose it.
  encodePayment: ({ contract_type, from, to, value }) =>
    bytesOf(
      contract_type === 'CONTRACT_TYPE_ERC20'
        ? encodeCall('transfer(address,uint256)', to, value)
        : encodeCall('safeTransferFrom(address,address,uint256)', from, to, value),
    ),
}

/** The rules of variant C. */
export const evmFamily: Family<'c'> = {
  service: 'c',
  native: { asset_type: 'ASSET_TYPE_C', contract_address: Buffer.alloc(0), token_id: 0n },
  reorganizes: true,
  balances: 'read',
  // Tokens that rebase change balances without an event, so token balances are compared with the chain.
  changesSilently: 'tokens',
  standards,
  signing: evmSigning,
  parseAddress,
  formatAddress: toHex,
  parseTransactionHash: parseHexHash,
  formatTransactionHash: toHex,
  transactionField: 'transaction_hash',
  presentTransfer: (view) => ({
    transaction_hash: toHex(view.transaction_hash),
    asset_type: view.asset.asset_type,
    nonce: String(view.detail?.nonce ?? ''),
    from: toHex(view.from),
    to: toHex(view.to),
    value: view.value.toString(),
    transaction_fee: view.transaction_fee.toString(),
    transfer_state: view.transfer_state,
    block_number: view.block_number,
    position: view.ordinal,
    block_timestamp: Math.floor(view.block_time.getTime() / 1000),
    transfer_metadata: presentMetadata(view.asset),
    verified: view.detail?.verified !== false,
  }),
  // A transaction that comes back in another block has another index there.
  transferKey: ({ transaction_hash, ordinal }) => [
    transaction_hash,
    ordinal % placesPerTransaction,
  ],
  // The sender has this record of every transaction.
  paysFee: ({ side, ordinal }) => side === 0 && ordinal % placesPerTransaction === valuePlace,
  presentAsset: (view) => ({
    wallet_id: view.wallet_id,
    address: view.address ? toHex(view.address) : '',
    asset_type: view.asset.asset_type,
    balance: view.balance.toString(),
    asset_metadata: presentMetadata(view.asset),
  }),
}
