import { type Chain, coinOf } from './chains.ts'

/** What a token says of itself. Every text in it is untrusted. */
export type TokenMetadata = {
  erc20?: { contract_address: string; name: string; symbol: string; decimals?: number }
  erc721?: { contract_address: string; name: string; symbol: string; token_id: string }
  erc1155?: { contract_address: string; token_id: string }
}

/** A transfer with the fields of all variants. */
export type Transfer = {
  transfer_id: string
  wallet_id: string
  transaction_hash?: string
  transaction_digest?: string
  asset_type: string
  from: string
  to: string
  value: string
  transaction_fee?: string
  fee_paid?: string
  direction?: string
  transfer_time: string
  block_number?: number | string
  transfer_state?: string
  status?: string
  message?: string
  token_address?: string
  verified?: boolean
  transfer_metadata?: TokenMetadata
}

/** A balance with the fields of all variants. */
export type Asset = {
  wallet_id: string
  address: string
  asset_type: string
  balance: string
  token_address?: string
  is_unreadable?: boolean
  asset_metadata?: TokenMetadata
}

/** How an amount is shown. */
export type Unit = { symbol: string; decimals: number; item?: string }

/** The identifier of the transaction of a transfer, whatever the chain calls it. */
export const transactionOf = (transfer: {
  transaction_hash?: string
  transaction_digest?: string
}): string => transfer.transaction_hash ?? transfer.transaction_digest ?? ''

/** The filter of a list by transaction, by the name of its chain: S calls the identifier its digest. */
export const transactionField = (
  chain: Pick<Chain, 'kind'>,
  transaction: string,
): { transaction_hash?: string } =>
  chain.kind === 'sui'
    ? ({ transaction_digest: transaction } as object)
    : { transaction_hash: transaction }

/** The unit of an amount. Where a token does not say its decimals, the amount is in its smallest unit. */
export function unitOf(
  chain: Pick<Chain, 'symbol' | 'decimals'>,
  token_address: string | undefined,
  metadata: TokenMetadata | undefined,
): Unit {
  if (metadata?.erc20)
    return { symbol: metadata.erc20.symbol || 'token', decimals: metadata.erc20.decimals ?? 0 }
  if (metadata?.erc721)
    return {
      symbol: metadata.erc721.symbol || 'item',
      decimals: 0,
      item: metadata.erc721.token_id,
    }
  if (metadata?.erc1155) return { symbol: 'item', decimals: 0, item: metadata.erc1155.token_id }
  if (token_address) return { symbol: 'units', decimals: 0 }
  const { symbol, decimals } = coinOf(chain)
  return { symbol, decimals }
}
