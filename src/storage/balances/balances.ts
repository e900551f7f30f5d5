// Statements on balances: stored values, due readings, the backlog of blocks far behind the head, re-reading
// after gaps and the daily comparison. They use `pg`. A reading never replaces one of a later block.

import { type RawBuilder, sql } from 'kysely'
import type { AssetKey, AssetType } from '../../contract/records/assets.ts'
import { encodeArray } from '../pg/binary-arrays.ts'
import { unnestRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import { type AssetInfo, boundedDescriptions } from '../wallets/assets.ts'
import type { WalletScope } from '../wallets/tables.ts'

/** A balance as it is listed. */
export type ListedBalance = AssetKey &
  AssetInfo & {
    wallet_id: string
    address: Buffer
    asset_id: string
    balance: bigint
    /** Whether the contract fails: then the balance is the last one that could be read. */
    is_unreadable: boolean
    /** As text, so that page tokens are exact. */
    create_time: string
    /** The place in the batch that created it. */
    position: number
    token_uri: string | null
    token_data: string | null
    /** The page ends before it, and its descriptions are left out. */
    is_beyond: boolean
    token_account_address: Buffer | null
  }

/** The sum of an asset over addresses. */
export type ListedSum = Omit<
  ListedBalance,
  'wallet_id' | 'address' | 'position' | 'token_account_address'
>

/** Which balances are wanted. */
export type BalanceFilter = {
  wallet_id?: string | undefined
  address?: Buffer | undefined
  asset_type: AssetType
  contract_address?: Buffer | undefined
  exclude_zero: boolean
}

/** A balance as it was read from the chain. */
export type Reading = {
  wallet_id: string
  organization_id: string
  address: Buffer
  asset_id: string
  asset_type: AssetType
  contract_address: Buffer
  /** Null where the contract that holds it fails. */
  balance: bigint | null
  as_of_block: number
}

const all = (conditions: (RawBuilder<unknown> | undefined | false)[]): RawBuilder<unknown> =>
  sql.join(conditions.filter(Boolean) as RawBuilder<unknown>[], sql` and `)

const filterOf = ({ address, asset_type, contract_address }: BalanceFilter) => [
  sql`b.asset_type = ${asset_type}`,
  address && sql`b.address = ${address}`,
  contract_address && sql`b.contract_address = ${contract_address}`,
]

/** What a wallet, or one of its addresses, has of an asset, and the block of each address's balance. */
export const sumBalance = async (
  db: Db,
  { organization_id }: WalletScope,
  { wallet_id, address, asset_id }: { wallet_id: string; address?: Buffer; asset_id: string },
  holders: readonly Buffer[],
): Promise<{ sum: bigint; asOf: Map<string, number> }> => {
  const mine = sql`b.wallet_id = ${wallet_id} and b.organization_id = ${organization_id}
    and b.asset_id = ${asset_id}`
  const { rows: sums } = await sql<{ sum: bigint }>`
    select coalesce(sum(b.balance), 0)::numeric(78) as sum from balance b
    where ${mine} ${address ? sql`and b.address = ${address}` : sql``}`.execute(db)
  const { rows } = await sql<{ address: Buffer; as_of_block: number }>`
    select b.address, b.as_of_block from unnest(${holders as Buffer[]}::bytea[]) h (address)
    join balance b on b.address = h.address and ${mine}`.execute(db)
  return {
    sum: sums[0]?.sum ?? 0n,
    asOf: new Map(rows.map((row) => [row.address.toString('hex'), row.as_of_block])),
  }
}

const known = sql`a.asset_type, a.contract_address, a.token_id, a.name, a.symbol, a.decimals`

/** The position of the next page: a balance, or the end of a wallet. */
export type BalancePosition = Pick<
  ListedBalance,
  'wallet_id' | 'create_time' | 'position' | 'asset_id' | 'address'
>

/**
 * How many balances are looked at for a page, and wallets without any. Behind thousands of zeros that are not wanted a page is
 * short, or empty, and has a position to continue from.
 */
export const balanceScan = 5_000

/** One page of balances: wallet by wallet, and in each in the order of their creation. */
export const listBalances = async (
  db: Db,
  scope: WalletScope,
  filter: BalanceFilter,
  { after, limit }: { after?: BalancePosition | undefined; limit: number },
): Promise<{ rows: ListedBalance[]; next: BalancePosition | undefined }> => {
  const rows: ListedBalance[] = []
  let end = after
  // Further each time: most pages are found with the first look.
  for (let look = limit + 1, left = Math.max(look, balanceScan); left > 0; look *= 4) {
    const count = Math.min(look, left)
    const found = await lookAtBalances(db, scope, filter, { after: end, limit: count })
    left -= count
    const beyond = found.rows.findIndex(({ is_beyond }) => is_beyond)
    rows.push(...(beyond < 0 ? found.rows : found.rows.slice(0, beyond)))
    end = beyond < 0 ? found.end : rows.at(-1)
    if (rows.length > limit) return { rows: rows.slice(0, limit), next: rows[limit - 1] }
    if (!end || beyond >= 0) break
  }
  return { rows, next: end }
}

/** The balances that are wanted among the next ones, and where to continue unless those were the last. */
const lookAtBalances = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  filter: BalanceFilter,
  { after, limit }: { after?: BalancePosition | undefined; limit: number },
): Promise<{ rows: ListedBalance[]; end: BalancePosition | undefined }> => {
  const wallets = all([
    sql`w.organization_id = ${organization_id} and w.network_id = ${network_id}`,
    filter.wallet_id && sql`w.wallet_id = ${filter.wallet_id}`,
    after &&
      (after.create_time === endOfWallet
        ? sql`w.wallet_id > ${after.wallet_id}`
        : sql`w.wallet_id >= ${after.wallet_id}`),
  ] as RawBuilder<unknown>[])
  const balances = all([
    ...filterOf(filter),
    // The first condition is exact. The second one follows from it and lets the index scan start at the page.
    // As a case, because of the bare comparison the planner expects hardly any row where many have one time,
    // and then reads and sorts all of them.
    after &&
      sql`case when b.wallet_id = ${after.wallet_id}
          then (b.create_time, b.position, b.asset_id, b.address) > (${after.create_time}::timestamptz,
            ${after.position}::int4, ${after.asset_id}::uuid, ${after.address}::bytea)
          else true end
        and (b.create_time, b.position) >= (
          case when w.wallet_id = ${after.wallet_id} then ${after.create_time}::timestamptz else '-infinity' end,
          case when w.wallet_id = ${after.wallet_id} then ${after.position}::int4 else 0 end)`,
  ])
  // Each wallet contributes at most one page, so that the order comes from the index and not from a sort; one without balances
  // a row that counts. Asset and address only distinguish balances that two batches created at the same time and position.
  const order = sql`wallet_id, create_time, position, asset_id, address`
  const { rows: looked } = await sql<ListedBalance & { is_listed: boolean; place: number }>`
    with looked as materialized (
      select w.wallet_id, b.address, b.asset_id, b.balance, b.create_time, b.position, b.unreadable_block
      from (select * from wallet w where ${wallets} order by w.wallet_id limit ${limit}) w
      left join lateral (
        select * from balance b where b.wallet_id = w.wallet_id and ${balances}
        order by b.create_time, b.position, b.asset_id, b.address limit ${limit}) b on true
      order by w.wallet_id, b.create_time, b.position, b.asset_id, b.address limit ${limit}),
    numbered as (
      select *, row_number() over (order by ${order}) as place,
        address is not null ${filter.exclude_zero ? sql`and balance > 0` : sql``} as is_listed
      from looked)
    select b.wallet_id, b.address, b.asset_id, b.balance, b.create_time::text, b.position, ${known},
      ${boundedDescriptions(sql`b.place`)},
      b.unreadable_block is not null as is_unreadable, i.token_account_address, b.is_listed, b.place::int4
    from numbered b
    left join asset a on b.is_listed and a.asset_id = b.asset_id
    left join token_import i on b.is_listed and i.network_id = ${network_id} and i.address = b.address
      and i.asset_id = b.asset_id and i.organization_id = ${organization_id}
    where b.is_listed or b.place = ${limit}
    order by b.place`.execute(db)
  const last = looked.at(-1)
  return {
    rows: looked.filter(({ is_listed }) => is_listed),
    // Without a row at that place these were the last.
    end: last && last.place >= limit ? endOf(last) : undefined,
  }
}

// After all times of balances, and of no asset.
const endOfWallet = 'infinity'
const noAsset = '00000000-0000-0000-0000-000000000000'

/** Where a list continues behind a row, which may be a wallet without balances. */
const endOf = (
  row: { [name in keyof BalancePosition]: BalancePosition[name] | null },
): BalancePosition => ({
  wallet_id: row.wallet_id as string,
  create_time: row.create_time ?? endOfWallet,
  position: row.position ?? 0,
  asset_id: row.asset_id ?? noAsset,
  address: row.address ?? Buffer.alloc(0),
})

/** One page of sums, one per asset, in the order in which the assets first appeared. */
export const listSums = async (
  db: Db,
  { organization_id, network_id }: WalletScope,
  filter: BalanceFilter,
  {
    after,
    limit,
  }: { after?: Pick<ListedSum, 'create_time' | 'asset_id'> | undefined; limit: number },
): Promise<ListedSum[]> => {
  const balances = all([
    sql`w.organization_id = ${organization_id} and w.network_id = ${network_id}`,
    filter.wallet_id ? sql`w.wallet_id = ${filter.wallet_id}` : undefined,
    ...filterOf(filter),
  ])
  const groups = all([
    sql`true`,
    filter.exclude_zero && sql`sum(b.balance) > 0`,
    after &&
      sql`(min(b.create_time), b.asset_id)
        > (${after.create_time}::timestamptz, ${after.asset_id}::uuid)`,
  ])
  const { rows } = await sql<ListedSum>`
    select s.asset_id, s.balance, s.is_unreadable, s.create_time::text, ${known},
      ${boundedDescriptions(sql`s.create_time, s.asset_id`)}
    from (
      select b.asset_id, sum(b.balance) as balance, min(b.create_time) as create_time,
        bool_or(b.unreadable_block is not null) as is_unreadable
      from wallet w join balance b on b.wallet_id = w.wallet_id
      where ${balances} group by b.asset_id having ${groups}
      order by min(b.create_time), b.asset_id limit ${limit}) s
    join asset a on a.asset_id = s.asset_id
    order by s.create_time, s.asset_id`.execute(db)
  return rows
}

/**
 * Stores readings of addresses and tokens that are still tracked. A reading of an older block changes
 * nothing, except a balance whose block was taken back. The caller must hold the cursor: removals wait for it.
 */
export const storeReadings = async (
  trx: Db,
  readings: readonly Reading[],
  { network_id, now }: { network_id: number; now: Date },
): Promise<void> => {
  if (readings.length === 0) return
  // All writers use one order, so that two writers of the same balances do not deadlock.
  await sql`
    insert into balance (${names(stored)})
    select ${readColumns}, ${unreadable}, ${now}::timestamptz,
      ${positionBy(sql`r.wallet_id, r.address, r.asset_id`)}, ${now}::timestamptz
    from ${unnestRows('balance', columns, readings)} r
    ${whereTracked(network_id)}
    order by r.wallet_id, r.address, r.asset_id
    on conflict (wallet_id, address, asset_id) do update set
      balance = case when excluded.unreadable_block is null
        then excluded.balance else balance.balance end,
      as_of_block = case when excluded.unreadable_block is null
        then excluded.as_of_block else balance.as_of_block end,
      is_stale = case when excluded.unreadable_block is not null then balance.is_stale end,
      unreadable_block = excluded.unreadable_block, update_time = excluded.update_time
    where balance.as_of_block <= excluded.as_of_block or balance.is_stale`.execute(trx)
}

/**
 * The same, for a caller with an open backlog, which proves that everything is still tracked, and exclusive
 * at the cursor: no balance appears meanwhile, so those that are new need not be looked for one by one.
 */
export const storeTracked = async (
  trx: Db,
  readings: readonly Reading[],
  now: Date,
): Promise<void> => {
  if (readings.length === 0) return
  // In the order of the key, which is where both looking for them and storing them goes along. All are
  // looked for (hence the count) before the first is stored: of a table that was empty when it was last
  // looked at the planner reads every page for each of them, and it would be growing meanwhile.
  const order = sql`r.address, r.wallet_id, r.asset_id`
  await sql`
    with read as materialized (
      select r.*, b.wallet_id is not null as is_known
      from (
        select r.*, ${positionBy(order)} as position
        from ${unnestRows('balance', columns, readings)} r order by ${order}) r
      left join balance b
        on b.wallet_id = r.wallet_id and b.address = r.address and b.asset_id = r.asset_id),
    known as (
      update balance b set balance = coalesce(r.balance, b.balance), update_time = ${now},
        as_of_block = case when r.balance is null then b.as_of_block else r.as_of_block end,
        is_stale = case when r.balance is null then b.is_stale end,
        unreadable_block = ${unreadable}
      from read r
      where r.is_known and b.wallet_id = r.wallet_id and b.address = r.address
        and b.asset_id = r.asset_id and (b.as_of_block <= r.as_of_block or b.is_stale))
    insert into balance (${names(stored)})
    select ${readColumns}, ${unreadable}, ${now}::timestamptz, position, ${now}::timestamptz from read r
    where not is_known and (select count(*) from read) > 0`.execute(trx)
}

/** Only those readings `r` whose address and token are tracked. */
export const whereTracked = (network_id: number): RawBuilder<unknown> => sql`
  join wallet_address t on t.network_id = ${network_id} and t.address = r.address
    and t.organization_id = r.organization_id and t.wallet_id = r.wallet_id
  where (r.contract_address = '' or exists (
      select 1 from contract c where c.organization_id = r.organization_id
        and c.network_id = ${network_id} and c.contract_address = r.contract_address)
    or exists (
      select 1 from token_import i where i.network_id = ${network_id} and i.address = r.address
        and i.asset_id = r.asset_id and i.organization_id = r.organization_id)
    or exists (
      select 1 from token_rule u where u.network_id = ${network_id} and u.asset_id = r.asset_id
        and u.organization_id = r.organization_id
        and (u.wallet_id is null or u.wallet_id = r.wallet_id)))`

/** The place of each new balance in its batch, which orders balances of the same time in lists. */
const positionBy = (order: RawBuilder<unknown>) =>
  sql`(row_number() over (order by ${order}) - 1)::int4`

const columns = [
  'wallet_id',
  'organization_id',
  'address',
  'asset_id',
  'asset_type',
  'contract_address',
  'balance',
  'as_of_block',
] as const

const stored = [...columns, 'unreadable_block', 'create_time', 'position', 'update_time'] as const

/** What was read, as it is stored where there is no balance yet. */
const readColumns = sql.join(
  columns.map((name) =>
    name === 'balance' ? sql`coalesce(r.balance, 0)` : sql`r.${sql.ref(name)}`,
  ),
)

const unreadable = sql`case when r.balance is null then r.as_of_block end`

const names = (list: readonly string[]) => sql.join(list.map((name) => sql.ref(name)))

/** Leaves a trace of readings, for the case that their block leaves the chain. */
export const rememberReadings = async (
  trx: Db,
  readings: readonly Reading[],
  { network_id, reading_id }: { network_id: number; reading_id: string },
): Promise<void> => {
  for (const [block_number, some] of Map.groupBy(readings, (row) => row.as_of_block)) {
    const wallet_ids = some.map(({ wallet_id }) => wallet_id)
    const addresses = some.map(({ address }) => address)
    const asset_ids = some.map(({ asset_id }) => asset_id)
    await sql`
      insert into balance_reading
        (network_id, block_number, reading_id, wallet_ids, addresses, asset_ids)
      values (${network_id}, ${block_number}, ${reading_id}, ${encodeArray('uuid', wallet_ids)}::uuid[],
        ${encodeArray('bytea', addresses)}::bytea[], ${encodeArray('uuid', asset_ids)}::uuid[])
      on conflict do nothing`.execute(trx)
  }
}
