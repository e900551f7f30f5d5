// Stored balances against the chain, in two ways. Sums of net changes are compared with a reading plus the changes that
// wait; a difference is corrected. Balances that are read are compared only where no work is open, since that work will
// change them.

import { sql } from 'kysely'
import type { AssetKey } from '../../contract/records/assets.ts'
import { lowestId } from '../../lib/ids.ts'
import type { Db } from '../pg/database.ts'
import {
  addressesBeyond,
  addressesPerPage,
  endOfPage,
  type RowWithEnd,
  splitEnd,
  type WalkPosition,
} from './wallet-walk.ts'

/** The name of a balance. */
export type BalancePair = { wallet_id: string; address: Buffer; asset_id: string }

/** A balance that is compared, with what is needed to read it. */
export type ComparedBalance = BalancePair &
  AssetKey & { organization_id: string; confirmation: number; token_account_address: Buffer | null }

/**
 * The next balances of a chain in the order of their wallets, and the position behind them; undefined at the end. A page may
 * have none and not be the end.
 */
export const pageBalances = async (
  db: Db,
  network_id: number,
  {
    after,
    limit,
    most_addresses = addressesPerPage,
  }: { after: WalkPosition | undefined; limit: number; most_addresses?: number },
): Promise<{ balances: ComparedBalance[]; last: WalkPosition | undefined }> => {
  // Inside of the list of assets, where it is a bound of its key: an address with very many assets was read from its first one
  // for every page. No asset has the lowest id.
  const beyond = after?.asset_id
    ? sql`and asset_id > case when (t.wallet_id, t.address) = (${after.wallet_id}::uuid, ${after.address}::bytea)
        then ${after.asset_id}::uuid else ${lowestId}::uuid end`
    : sql``
  // Ordered inside and not outside: an outer order lets the planner read all addresses of the page before it sorts. The nested
  // loop of a lateral join keeps the order of both.
  const { rows } = await sql<RowWithEnd<ComparedBalance>>`
    with page as materialized (
      select t.wallet_id, t.address, b.asset_id, b.organization_id
      from (${addressesBeyond(after)} limit ${most_addresses}) t
      cross join lateral (
        select asset_id, organization_id from balance
        where address = t.address and wallet_id = t.wallet_id ${beyond}
        order by asset_id limit ${limit}) b
      where t.network_id = ${network_id} limit ${limit}),
    ${endOfPage({ after, limit, most_addresses })}
    select p.*, a.asset_type, a.contract_address, a.token_id, w.confirmation, i.token_account_address,
      e.*
    from (select) one left join (
      page p join wallet w using (wallet_id) join asset a using (asset_id)
      left join token_import i on i.network_id = ${network_id} and i.address = p.address
        and i.asset_id = p.asset_id and i.organization_id = p.organization_id) on true
    left join ended e on true
    order by p.wallet_id, p.address, p.asset_id`.execute(db)
  const { rows: balances, end } = splitEnd(rows)
  return { balances, last: balances.length < limit ? end : balances.at(-1) }
}

/** What a balance was found to be at a block. */
export type Found = BalancePair & { balance: bigint; block_number: number }

/** A balance that was not what it should be. */
export type Difference = BalancePair & { expected: bigint; found: bigint; block_number: number }

/**
 * Compares balances that follow by net changes with what was read at a block that the cursor has
 * reached: the balance and the changes up to that block that wait for their confirmation must add up
 * to it. A wrong balance is corrected by the difference, so that waiting changes continue waiting. Balances
 * that are beyond the block, are going to be read again anyway, or have a reading that waits for its confirmation, are left
 * alone.
 */
export const repairBalances = async (
  trx: Db,
  found: readonly Found[],
  now: Date,
): Promise<{ compared: number; differences: Difference[] }> => {
  const column = <key extends keyof Found>(key: key) => found.map((one) => one[key])
  // What is not confirmed yet is part of the chain's balance and not of the stored one. Work
  // without a delta means that the balance will be read: comparing it now would report a difference
  // that is about to go.
  const { rows } = await sql<Difference>`
    with found as (
      select * from unnest(${column('wallet_id')}::uuid[], ${column('address')}::bytea[],
        ${column('asset_id')}::uuid[], ${found.map(({ balance }) => balance.toString())}::numeric[],
        ${column('block_number')}::int8[]) as f (wallet_id, address, asset_id, found, block_number)),
    held as materialized (
      select b.*, f.found, f.block_number from found f join balance b
        on b.wallet_id = f.wallet_id and b.address = f.address and b.asset_id = f.asset_id
      where b.as_of_block <= f.block_number and b.is_stale is not true
      order by b.wallet_id, b.address, b.asset_id for update of b),
    waiting as (
      select h.wallet_id, h.address, h.asset_id, coalesce(sum(c.delta), 0) as delta,
        bool_or(c.block_number is not null and c.delta is null) or exists (
          select 1 from balance_pending p where p.address = h.address
            and p.wallet_id = h.wallet_id and p.asset_id = h.asset_id) as unsure
      from held h left join balance_change c
        on c.wallet_id = h.wallet_id and c.address = h.address and c.asset_id = h.asset_id
          and c.block_number > h.as_of_block
          and (c.block_number <= h.block_number or c.delta is null)
      group by h.wallet_id, h.address, h.asset_id),
    compared as (
      select h.wallet_id, h.address, h.asset_id, h.balance + w.delta as expected, h.found, h.block_number
      from held h join waiting w
        on w.wallet_id = h.wallet_id and w.address = h.address and w.asset_id = h.asset_id
      where not w.unsure),
    repaired as (
      update balance b set balance = b.balance + c.found - c.expected, update_time = ${now}
      from compared c
      where b.wallet_id = c.wallet_id and b.address = c.address and b.asset_id = c.asset_id
        and c.found <> c.expected)
    select * from compared`.execute(trx)
  return { compared: rows.length, differences: rows.filter((row) => row.found !== row.expected) }
}

/** What is stored of a balance that was read again, where nothing else is going to change it. */
export type StoredBalance = BalancePair & { balance: bigint; is_unreadable: boolean }

/**
 * The stored balances of pairs for which no work is open, that are not beyond the block at which they
 * were read again. Of what is kept until it is confirmed, the newest counts.
 */
export const findComparable = async (
  trx: Db,
  found: readonly (BalancePair & { as_of_block: number })[],
): Promise<StoredBalance[]> => {
  const column = <key extends keyof (typeof found)[number]>(key: key) =>
    found.map((one) => one[key])
  const { rows } = await sql<StoredBalance>`
    select b.wallet_id, b.address, b.asset_id, coalesce(p.balance, b.balance) as balance,
      b.unreadable_block is not null as is_unreadable
    from unnest(${column('wallet_id')}::uuid[], ${column('address')}::bytea[],
      ${column('asset_id')}::uuid[], ${column('as_of_block')}::int8[])
      as f (wallet_id, address, asset_id, as_of_block)
    join balance b on b.wallet_id = f.wallet_id and b.address = f.address
      and b.asset_id = f.asset_id and b.as_of_block <= f.as_of_block
    left join lateral (
      select p.balance, p.block_number from balance_pending p
      where p.address = f.address and p.wallet_id = f.wallet_id and p.asset_id = f.asset_id
      order by p.block_number desc limit 1) p on true
    where coalesce(p.block_number, 0) <= f.as_of_block
      and not exists (select 1 from balance_change c where c.wallet_id = f.wallet_id
        and c.address = f.address and c.asset_id = f.asset_id)
    order by b.wallet_id, b.address, b.asset_id for update of b`.execute(trx)
  return rows
}

/** Whether balance work of a chain waits in backlogs. */
export const hasBacklog = async (trx: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from balance_backlog where network_id = ${network_id} limit 1`.execute(trx)
  return rows.length > 0
}
