// The part of the chain port that concerns tokens. Uses `contract` only; a chain without tokens leaves it out.
import type { AssetKey, AssetType, ContractType } from '../contract/records/assets.ts'

/** What a chain knows of a token. */
export type TokenInfo = { name: string | null; symbol: string | null; decimals: number | null }

/** Whether a token is what the caller says, and if not, which field is wrong and why. */
export type TokenCheck<found> =
  | ({ ok: true } & found)
  | { ok: false; field: string; detail: string }

/** Tokens beside the native coin, where a chain has them. */
export type Tokens = {
  /** C: reads the contract and proves its type. */
  verifyContract?(
    contract: { contract_address: Buffer; contract_type: ContractType },
    signal: AbortSignal,
  ): Promise<TokenCheck<{ info: TokenInfo }>>
  /** C: where items say that they are described, in the order of the assets; null where they do not. */
  readTokenUris?(assets: readonly AssetKey[], signal: AbortSignal): Promise<(string | null)[]>
  /** T, S: proves that a token is there, without an address that has it. */
  verifyToken?(
    token: { asset_type: AssetType; token_address: Buffer },
    signal: AbortSignal,
  ): Promise<TokenCheck<{ asset: AssetKey; info: TokenInfo }>>
  /**
   * T: the accounts of a token that addresses have, in their order, deployed or not; undefined where the
   * token names none, or one that belongs to another token or owner.
   */
  findAccounts?(
    asset: AssetKey,
    owners: readonly Buffer[],
    signal: AbortSignal,
  ): Promise<(Buffer | undefined)[]>
  /** T, S: finds the token, its account of the address, and proves that they belong together. */
  resolveImport?(
    request: {
      asset_type: AssetType
      address?: Buffer
      token_address?: Buffer
      token_account_address?: string
    },
    signal: AbortSignal,
  ): Promise<
    TokenCheck<{
      address: Buffer
      asset: AssetKey
      token_account_address: Buffer
      info: TokenInfo
    }>
  >
}
