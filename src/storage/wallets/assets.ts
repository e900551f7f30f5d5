import { sql } from 'kysely'
import type { AssetKey } from '../../contract/records/assets.ts'
import { hashId } from '../../lib/hash-id.ts'
import { type BulkRow, insertRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from './tables.ts'

/** What is known of it besides. */
export type AssetInfo = { name: string | null; symbol: string | null; decimals: number | null }

/** A token that is tracked for an address (T, S). */
export type TokenImport = Omit<BulkRow<'token_import'>, 'create_time'>

// A hash instead of a sequence: the tracker makes rows that refer to an asset without reading it first, and two processes
// that see a new token at the same time agree on its id.
/** The id of an asset, known without asking. */
export const assetIdOf = (network_id: number, asset: AssetKey): string =>
  hashId('asset', network_id, asset.asset_type, asset.contract_address, asset.token_id)

/** Makes sure that assets have a row; those that have one keep what they know. */
export const ensureAssets = async (
  db: Db,
  network_id: number,
  assets: readonly (AssetKey & Partial<AssetInfo>)[],
  create_time: Date,
): Promise<void> => {
  await insertRows(
    db,
    'asset',
    assets.map(({ asset_type, contract_address, token_id, name, symbol, decimals }) => ({
      asset_id: assetIdOf(network_id, { asset_type, contract_address, token_id }),
      network_id,
      asset_type,
      contract_address,
      token_id,
      name: name ?? null,
      symbol: symbol ?? null,
      decimals: decimals ?? null,
      create_time,
    })),
  )
}

/** Sets what is known of every asset of a contract. */
export const setAssetInfo = async (
  db: Db,
  asset: { network_id: number; contract_address: Buffer } & AssetInfo,
): Promise<void> => {
  const { name, symbol, decimals } = asset
  await db
    .updateTable('asset')
    .set({ name, symbol, decimals })
    .where('network_id', '=', asset.network_id)
    .where('contract_address', '=', asset.contract_address)
    .execute()
}

/** Tracks tokens for addresses; what is tracked already stays as it is. */
export const insertTokenImports = async (
  trx: Db,
  imports: readonly TokenImport[],
  create_time: Date,
): Promise<number> =>
  await insertRows(
    trx,
    'token_import',
    imports.map((row) => ({ ...row, create_time })),
  )

/** Keeps a token at an address although the rules that track it are removed. */
export const keepTokenImport = async (
  trx: Db,
  {
    network_id,
    address,
    asset_id,
    organization_id,
  }: Pick<TokenImport, 'network_id' | 'address' | 'asset_id' | 'organization_id'>,
): Promise<void> => {
  await trx
    .updateTable('token_import')
    // Imports of rules have the block after which they count. One without it stays when the rule is removed.
    .set({ since_block: null })
    .where('network_id', '=', network_id)
    .where('address', '=', address)
    .where('asset_id', '=', asset_id)
    .where('organization_id', '=', organization_id)
    .execute()
}

/** The tokens of rules that are tracked at addresses, each with the block after which it counts (T). */
export const findLateImports = async (
  trx: Db,
  network_id: number,
  addresses: readonly Buffer[],
): Promise<
  { address: Buffer; asset_id: string; organization_id: string; since_block: number }[]
> => {
  if (addresses.length === 0) return []
  return await trx
    .selectFrom('token_import')
    .select(['address', 'asset_id', 'organization_id', 'since_block'])
    .where('network_id', '=', network_id)
    .where(sql<boolean>`address = any(${addresses as Buffer[]}::bytea[])`)
    .where('since_block', 'is not', null)
    .$narrowType<{ since_block: number }>()
    .execute()
}

/** The tokens that an organization tracks for some addresses of a wallet. */
export const listTokenImports = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  { wallet_id, addresses }: { wallet_id: string; addresses: readonly Buffer[] },
): Promise<(AssetKey & { address: Buffer; token_account_address: Buffer })[]> => {
  // Joined for the key of the asset; the import itself knows only its id.
  const { rows } = await sql<AssetKey & { address: Buffer; token_account_address: Buffer }>`
    select i.address, i.token_account_address, a.asset_type, a.contract_address, a.token_id
    from token_import i join asset a on a.asset_id = i.asset_id
    where i.wallet_id = ${wallet_id} and i.address = any(${addresses as Buffer[]}::bytea[])
      and i.organization_id = ${organization_id} and i.network_id = ${network_id}`.execute(db)
  return rows
}

/** The tracked tokens of these addresses, by organization: the tracker's look-up. */
export const findTokenImports = async (
  trx: Db,
  network_id: number,
  addresses: readonly Buffer[],
): Promise<{ address: Buffer; asset_id: string; organization_id: string }[]> => {
  if (addresses.length === 0) return []
  return await trx
    .selectFrom('token_import')
    .select(['address', 'asset_id', 'organization_id'])
    .where('network_id', '=', network_id)
    .where(sql<boolean>`address = any(${addresses as Buffer[]}::bytea[])`)
    .execute()
}

/** The token accounts of an organization's addresses that are tracked (T). */
export const findOwnAccounts = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  { asset_id, addresses }: { asset_id: string; addresses: readonly Buffer[] },
): Promise<{ address: Buffer; account: Buffer }[]> =>
  await db
    .selectFrom('token_import')
    .select(['address', 'token_account_address as account'])
    .where('network_id', '=', network_id)
    .where(sql<boolean>`address = any(${addresses as Buffer[]}::bytea[])`)
    .where('asset_id', '=', asset_id)
    .where('organization_id', '=', organization_id)
    .execute()

/** Which of a block's accounts are token accounts of tracked addresses (T). */
export const findTokenAccounts = async (
  trx: Db,
  network_id: number,
  accounts: readonly Buffer[],
): Promise<(AssetKey & { account: Buffer; owner: Buffer })[]> => {
  if (accounts.length === 0) return []
  // Distinct, because organizations that track the same address have one import each.
  const { rows } = await sql<AssetKey & { account: Buffer; owner: Buffer }>`
    select distinct i.token_account_address as account, i.address as owner,
      a.asset_type, a.contract_address, a.token_id
    from token_import i join asset a on a.asset_id = i.asset_id
    where i.network_id = ${network_id} and i.token_account_address <> ''
      and i.token_account_address = any(${accounts as Buffer[]}::bytea[])`.execute(trx)
  return rows
}

/** The keys of assets by their ids. */
export const findAssets = async (
  db: Db,
  asset_ids: readonly string[],
): Promise<(AssetKey & { asset_id: string })[]> =>
  await db
    .selectFrom('asset')
    .select(['asset_id', 'asset_type', 'contract_address', 'token_id'])
    .where(sql<boolean>`asset_id = any(${asset_ids as string[]}::uuid[])`)
    .execute()
