import { type RawBuilder, sql } from 'kysely'
import type { AssetKey } from '../../contract/records/assets.ts'
import { hashId } from '../../lib/hash-id.ts'
import { isBehind, type PairPage } from '../balances/held.ts'
import { type BulkRow, insertRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from './tables.ts'

/** What is known of it besides. */
export type AssetInfo = { name: string | null; symbol: string | null; decimals: number | null }

/** How many bytes the descriptions of items on a page have before the last one of them. */
export const maxDescriptionBytes = 1_048_576

/**
 * The descriptions of the assets `a` of a page in some order, and from the row on before which they have too many bytes, that
 * it is beyond the page: a hundred items of 256 KiB would be one answer of 26 MB. The lengths are known without reading the texts.
 */
export const boundedDescriptions = (order: RawBuilder<unknown>): RawBuilder<unknown> => {
  const isBeyond = sql`coalesce(
    sum(octet_length(coalesce(a.token_uri, '')) + octet_length(coalesce(a.token_data, ''))) over (
      order by ${order} rows between unbounded preceding and 1 preceding)
      > ${maxDescriptionBytes}::int8, false)`
  return sql`case when not ${isBeyond} then a.token_uri end as token_uri,
    case when not ${isBeyond} then a.token_data end as token_data, ${isBeyond} as is_beyond`
}

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

/** A token that is tracked at an address, with its key and its token account. */
type ImportedToken = AssetKey & {
  address: Buffer
  asset_id: string
  token_account_address: Buffer
}

/** A page of the tokens that an organization tracks at some addresses of a wallet, address by address in the order of the key. */
export const pageTokenImports = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  { wallet_id, addresses, from, limit }: PairPage,
): Promise<ImportedToken[]> => {
  // Joined behind the limit for the key of the asset; the import itself knows only its id.
  const { rows } = await sql<ImportedToken>`
    select p.address, p.asset_id, p.token_account_address, a.asset_type, a.contract_address, a.token_id
    from (
      select t.place, t.address, i.asset_id, i.token_account_address
      from unnest(${addresses as Buffer[]}::bytea[]) with ordinality t (address, place)
      cross join lateral (
        select asset_id, token_account_address from token_import
        where network_id = ${network_id} and address = t.address and ${isBehind(from)}
          and wallet_id = ${wallet_id} and organization_id = ${organization_id}
        order by asset_id limit ${limit}) i
      limit ${limit}) p
    join asset a on a.asset_id = p.asset_id
    order by p.place, p.asset_id`.execute(db)
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
