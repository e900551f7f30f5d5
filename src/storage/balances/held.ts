import { type RawBuilder, sql } from 'kysely'
import type { AssetKey, ContractType } from '../../contract/records/assets.ts'
import { lowestId } from '../../lib/ids.ts'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'

/** The last pair of a page: an address, and what its assets are ordered by. */
export type AfterPair = { address: Buffer; key: string }

/** So many pairs of some addresses, behind one of them. */
export type PairPage = {
  wallet_id: string
  addresses: readonly Buffer[]
  from: AfterPair | undefined
  limit: number
}

/** Whether an asset of address `t` is behind a pair. Always a comparison, so that the index is read from there. */
export const isBehind = (from: AfterPair | undefined): RawBuilder<unknown> => sql`
  asset_id > case when t.address = ${from?.address ?? null}::bytea
    then ${from?.key ?? lowestId}::uuid else ${lowestId}::uuid end`

type HeldAsset = AssetKey & { address: Buffer; asset_id: string; is_listed: boolean }

/**
 * A page of the assets that addresses of a wallet have a balance of, zero included, in the order of the key. Of all types: the
 * key does not have the type, and a page must not pass over any number of others. `is_listed` says whether the contract is
 * registered as fungible.
 */
export const pageHeldAssets = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  {
    wallet_id,
    addresses,
    from,
    limit,
    fungible,
  }: PairPage & { fungible: ContractType | undefined },
): Promise<HeldAsset[]> => {
  const { rows } = await sql<HeldAsset>`
    select p.address, p.asset_id, a.asset_type, a.contract_address, a.token_id,
      exists (
        select from contract c where c.organization_id = ${organization_id}
          and c.network_id = ${network_id} and c.contract_address = a.contract_address
          and c.contract_type = ${fungible ?? null}) as is_listed
    from (
      select t.place, t.address, b.asset_id
      from unnest(${addresses as Buffer[]}::bytea[]) with ordinality t (address, place)
      cross join lateral (
        select asset_id from balance
        where address = t.address and wallet_id = ${wallet_id} and ${isBehind(from)}
        order by asset_id limit ${limit}) b
      limit ${limit}) p
    join asset a on a.asset_id = p.asset_id
    order by p.place, p.asset_id`.execute(db)
  return rows
}
