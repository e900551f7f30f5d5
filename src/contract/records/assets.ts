import type { WalletService } from '../variant.ts'

/** The asset types of each wallet service (spec 2.7). */
export const assetTypes = {
  t: ['ASSET_TYPE_T'],
  s: ['ASSET_TYPE_S'],
  p: ['ASSET_TYPE_P'],
  c: ['ASSET_TYPE_C', 'ASSET_TYPE_ERC20', 'ASSET_TYPE_ERC721', 'ASSET_TYPE_ERC1155'],
} as const

/** The type of an asset in any wallet service. */
export type AssetType = (typeof assetTypes)[WalletService][number]

/** The token standards that can be registered (spec 2.7). */
export const contractTypes = [
  'CONTRACT_TYPE_ERC20',
  'CONTRACT_TYPE_ERC721',
  'CONTRACT_TYPE_ERC1155',
] as const

/** The standard of a token contract. */
export type ContractType = (typeof contractTypes)[number]

/** The token standards that CreateTokenTransaction sends (spec 2.7). */
export const sendableContractTypes = ['CONTRACT_TYPE_ERC20', 'CONTRACT_TYPE_ERC721'] as const

/** The standard of a token that can be sent. */
export type SendableContractType = (typeof sendableContractTypes)[number]

/** Identifies an asset: the coin (no contract), a token, or one item of a collection. */
export type AssetKey = {
  asset_type: AssetType
  /** The contract (C), jetton master (T) or UTF-8 coin type (S); empty is the native coin. */
  contract_address: Buffer
  /** 0 where the asset is not one item of a collection. */
  token_id: bigint
}
