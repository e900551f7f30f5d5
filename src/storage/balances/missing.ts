// Balances that may be missing: of an address on which no event was seen there is no row, also where the chain has coin or
// tokens of it. They are looked for address by address: the coin and, in each round, some of the registered tokens.

import { type RawBuilder, sql } from 'kysely'
import type { AssetKey, ContractType } from '../../contract/records/assets.ts'
import { keyOf } from '../../lib/bytes.ts'
import type { Db } from '../pg/database.ts'
import { assetIdOf } from '../wallets/assets.ts'
import type { BalancePair, ComparedBalance } from './reconcile.ts'
import {
  addressesBeyond,
  addressesPerPage,
  endOfPage,
  type RowWithEnd,
  splitEnd,
  type WalkPosition,
} from './wallet-walk.ts'

/**
 * How many tokens of an address are looked for in a round. It bounds the cost of a round by the number of addresses: an
 * organization with more tokens has them in turn, in as many rounds as that takes, and delays no other one.
 */
export const tokensPerRound = 10

const types = (list: readonly ContractType[]) => sql`${list as ContractType[]}::text[]`

/** How many pairs a round looks at for that, at the most. */
export const missingCount = (
  network_id: number,
  token_types: readonly ContractType[],
): RawBuilder<number> => sql`(
  select coalesce(sum(w.address_count * (1 + least(${tokensPerRound}, coalesce(c.count, 0)))), 0)::int8
  from wallet w left join (
    select organization_id, count(*) as count from contract
    where network_id = ${network_id} and contract_type = any(${types(token_types)})
    group by organization_id) c on c.organization_id = w.organization_id
  where w.network_id = ${network_id})`

/** The tokens that can be looked for, and how far that is. */
export type MissingPage = {
  native: AssetKey
  /** What is registered as one of these types has a balance without an item. */
  tokens: ReadonlyMap<ContractType, AssetKey['asset_type']>
  round_number: number
  after: WalkPosition | undefined
  limit: number
  most_addresses?: number
}

type AddressRow = Pick<
  ComparedBalance,
  'wallet_id' | 'address' | 'organization_id' | 'confirmation'
>

type TokenRow = { organization_id: string; contract_address: Buffer; contract_type: ContractType }

/**
 * The next pairs that may be missing, about `limit` with those that have a balance, of which only those are given that
 * have none and no open work; and the position behind them, undefined at the end. A page may have none and not be the end.
 */
export const pageMissing = async (
  db: Db,
  network_id: number,
  { native, tokens, round_number, after, limit, most_addresses = addressesPerPage }: MissingPage,
): Promise<{ pairs: ComparedBalance[]; passed: number; last: WalkPosition | undefined }> => {
  const { rows } = await sql<RowWithEnd<AddressRow>>`
    with page as materialized (
      select t.wallet_id, t.address, t.organization_id
      from (${addressesBeyond(after)} limit ${most_addresses}) t
      where t.network_id = ${network_id} limit ${limit}),
    ${endOfPage({ after, limit, most_addresses })}
    select p.*, w.confirmation, e.*
    from (select) one left join (page p join wallet w using (wallet_id)) on true
    left join ended e on true
    order by p.wallet_id, p.address`.execute(db)
  const { rows: addresses, end } = splitEnd(rows)
  const organizations = [...new Set(addresses.map(({ organization_id }) => organization_id))]
  const { rows: turn } = await sql<TokenRow>`
    select organization_id, contract_address, contract_type from (
      select *, row_number() over owned - 1 as place, count(*) over (partition by organization_id) as count
      from contract
      where network_id = ${network_id} and organization_id = any(${organizations}::uuid[])
        and contract_type = any(${types([...tokens.keys()])})
      window owned as (partition by organization_id order by contract_address)) c
    where mod(place - mod(${round_number}::int8 * ${tokensPerRound}, count) + count, count)
      < ${tokensPerRound}`.execute(db)
  const coin = { ...native, asset_id: assetIdOf(network_id, native) }
  const assetsOf = Map.groupBy(turn, ({ organization_id }) => organization_id)
  const all: ComparedBalance[] = []
  let taken = 0
  for (const row of addresses) {
    const own = (assetsOf.get(row.organization_id) ?? []).map((token) => {
      const { contract_address, contract_type } = token
      const key = { asset_type: tokens.get(contract_type)!, contract_address, token_id: 0n }
      return { ...key, asset_id: assetIdOf(network_id, key) }
    })
    // At least one address, however many tokens are looked for.
    if (taken > 0 && all.length + own.length + 1 > limit) break
    taken++
    for (const asset of [coin, ...own]) all.push({ ...row, ...asset, token_account_address: null })
  }
  const isAll = taken === addresses.length && addresses.length < limit
  const [reached] = addresses.slice(taken - 1, taken)
  const last = isAll
    ? end
    : reached && { wallet_id: reached.wallet_id, address: reached.address, asset_id: null }
  const unknown = await findUnknown(db, all)
  return {
    pairs: all.filter((pair) => unknown.has(pairKeyOf(pair))),
    passed: all.length,
    last,
  }
}

const pairKeyOf = ({ wallet_id, address, asset_id }: BalancePair): string =>
  `${wallet_id}/${keyOf(address)}/${asset_id}`

/** Names those of some pairs that have no balance, none that waits for its confirmation and no open work. */
const findUnknown = async (db: Db, pairs: readonly BalancePair[]): Promise<Set<string>> => {
  const column = <key extends keyof BalancePair>(key: key) => pairs.map((one) => one[key])
  const of = (name: string) => sql`
    select from ${sql.ref(name)} o
    where o.address = f.address and o.wallet_id = f.wallet_id and o.asset_id = f.asset_id`
  const { rows } = await sql<BalancePair>`
    select f.* from unnest(${column('wallet_id')}::uuid[], ${column('address')}::bytea[],
      ${column('asset_id')}::uuid[]) as f (wallet_id, address, asset_id)
    where not exists (${of('balance')}) and not exists (${of('balance_pending')})
      and not exists (${of('balance_change')})`.execute(db)
  return new Set(rows.map(pairKeyOf))
}

/** Those of some pairs that are still missing. To be called while the cursor is held. */
export const stillMissing = async <pair extends BalancePair>(
  trx: Db,
  pairs: readonly pair[],
): Promise<pair[]> => {
  const unknown = await findUnknown(trx, pairs)
  return pairs.filter((pair) => unknown.has(pairKeyOf(pair)))
}
