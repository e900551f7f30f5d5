import type { TransferType } from '../../contract/records/states.ts'
import type { Family, TransferView } from '../chain.ts'
import { parseHexHash } from '../hex.ts'
import { formatAddress, formatUserFriendly, parseAddress } from './address.ts'

/**
 * Ordinals of one transaction: far more than it can have messages. It is here because the rules of addresses are
 * loaded at every start, and what decodes movements loads a library of 100 modules (0.1 s of CPU).
 */
export const ordinalsPerTransaction = 65_536

// 32 bytes in base64, with or without the padding.
const base64Hash = /^[0-9A-Za-z+/_-]{43}=?$/

/** Reads a hash in hex, base64 or base64url: explorers and libraries show all three. */
const parseHash = (text: string): Buffer | undefined => {
  const hex = parseHexHash(text)
  if (hex) return hex
  const bytes = base64Hash.test(text) ? Buffer.from(text, 'base64') : undefined
  return bytes?.length === 32 ? bytes : undefined
}

const formatHash = (hash: Uint8Array | null): string =>
  hash ? Buffer.from(hash).toString('hex') : ''

const transferTypeOf = ({ side }: TransferView): TransferType =>
  side === 0 ? 'TRANSFER_TYPE_OUTGOING' : 'TRANSFER_TYPE_INCOMING'

const paysFee = ({ detail, ordinal, external_hash }: TransferView): boolean => {
  if (detail?.pays_fee !== undefined) return detail.pays_fee === true
  // Rows of earlier versions do not say it. There it is the received message, or the first one sent
  // where the transaction came from outside.
  const place = ordinal % ordinalsPerTransaction
  return place === 0 || (place === 1 && external_hash !== null)
}

/** The rules of variant T. On a test network addresses that are marked for one are taken too. */
export const createTonFamily = ({ production = true } = {}): Family<'t'> => {
  const friendly = (address: Uint8Array) => formatUserFriendly(address, { production })
  return {
    service: 't',
    native: { asset_type: 'ASSET_TYPE_T', contract_address: Buffer.alloc(0), token_id: 0n },
    reorganizes: false,
    balances: 'read',
    tokenAccounts: true,
    parseAddress: (text) => parseAddress(text, { production }),
    formatAddress,
    formatUserFriendly: friendly,
    parseToken: (text) => parseAddress(text, { production }),
    formatToken: formatAddress,
    parseTransactionHash: parseHash,
    formatTransactionHash: formatHash,
    transactionField: 'transaction_hash',
    // All fields are texts (spec 2.8).
    presentTransfer: (view) => ({
      transaction_hash: formatHash(view.transaction_hash),
      asset_type: view.asset.asset_type,
      from: formatAddress(view.from),
      to: formatAddress(view.to),
      value: view.value.toString(),
      transaction_fee: view.transaction_fee.toString(),
      seq_no: String(view.detail?.seq_no ?? ''),
      workchain: String(view.detail?.workchain ?? ''),
      shard: String(view.detail?.shard ?? ''),
      status: String(view.detail?.status ?? 'success'),
      from_user_friendly_address: friendly(view.from),
      to_user_friendly_address: friendly(view.to),
      message: String(view.detail?.message ?? ''),
      message_hex: String(view.detail?.message_hex ?? ''),
      transfer_hash: formatHash(view.transfer_hash),
      transfer_type: transferTypeOf(view),
      bounced: String(view.detail?.bounced ?? 'false'),
      token_address: formatAddress(view.asset.contract_address),
      block_number: String(view.block_number),
      position: String(view.ordinal),
    }),
    // Both ends know the message; one message may carry coins and tokens.
    transferKey: ({ transfer_hash, asset, transaction_hash, ordinal }) =>
      transfer_hash
        ? [transfer_hash, asset.contract_address]
        : [transaction_hash, ordinal % ordinalsPerTransaction],
    paysFee,
    presentAsset: (view) => ({
      wallet_id: view.wallet_id,
      address: formatAddress(view.address ?? Buffer.alloc(0)),
      asset_type: view.asset.asset_type,
      balance: view.balance.toString(),
      user_friendly_address: friendly(view.address ?? Buffer.alloc(0)),
      token_address: formatAddress(view.asset.contract_address),
      token_account_address: formatAddress(view.token_account_address ?? Buffer.alloc(0)),
    }),
  }
}
