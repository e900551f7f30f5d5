// Reading all balances of a network again after a gap, or after a rollback to a block that is not stored. The transaction
// that passes the gap or goes back stores one row; the walk goes page by page in later transactions, so that the tracker
// does not wait for all balances of the network at once.

import { sql } from 'kysely'
import { lowestId } from '../../lib/ids.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { walletTables } from '../wallets/tables.ts'
import { deepConfirmation } from './changes.ts'

// The position of a walk before its first page.
const beginning = sql`wallet_id = null, address = null, address_organization_id = null, asset_id = null`

/**
 * Lets every balance of a chain be read again at this block or later, because those before it were not seen or left the chain. With
 * `lower_to`, balances of later blocks than that are lowered to it first: their blocks are gone.
 */
export const reopenAllBalances = async (
  trx: Db,
  {
    network_id,
    block_number,
    lower_to = null,
  }: { network_id: number; block_number: number; lower_to?: number | null },
): Promise<void> => {
  // A walk that is under way begins again at the block, also at an earlier one. What is still to be lowered stays so.
  await sql`
    insert into balance_reopening as o (network_id, block_number, lower_to)
    values (${network_id}, ${block_number}, ${lower_to})
    on conflict (network_id) do update set block_number = excluded.block_number,
      lower_to = least(o.lower_to, excluded.lower_to), ${beginning}`.execute(trx)
}

/**
 * Lets every balance be read again behind a gap, and says whether it does: not while another walk is under way. It would begin
 * again at each gap, and never end where that takes longer than the next gap. One that has read nothing yet begins behind this
 * gap instead, unless it has waited for its block because of other gaps since a time.
 */
export const reopenBehindGap = async (
  trx: Db,
  {
    network_id,
    block_number,
    now,
    since,
  }: { network_id: number; block_number: number; now: Date; since: Date },
): Promise<boolean> => {
  // While balances are lowered, the position is that of the lowering.
  const { numAffectedRows } = await sql`
    insert into balance_reopening as o (network_id, block_number, gap_time)
    values (${network_id}, ${block_number}, ${now})
    on conflict (network_id) do update set block_number = excluded.block_number,
      gap_time = coalesce(o.gap_time, excluded.gap_time)
      where o.lower_to is not null
        or (o.address is null and coalesce(o.gap_time, 'infinity') > ${since})`.execute(trx)
  return numAffectedRows === 1n
}

/** Whether a walk that read all balances again because of gaps has ended since a time. */
export const wasReopenedSince = async (
  db: Db,
  network_id: number,
  since: Date,
): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from network where network_id = ${network_id} and reopen_time > ${since}`.execute(db)
  return rows.length > 0
}

// Looking at more wallets would hold up the first block. The answer is yes then, which only costs a walk.
const mostWallets = 10_000

/** Whether any balance of a network was read, or may have been. */
export const hasReadings = async (trx: Db, network_id: number): Promise<boolean> => {
  // Ordered as the index, so that it is not planned as a scan of the balances of all networks.
  const { rows } = await sql<{ may: boolean }>`
    with looked_at as materialized (
      select wallet_id from wallet where network_id = ${network_id} limit ${mostWallets + 1})
    select (select count(*) from looked_at) > ${mostWallets}
      or exists (select from balance_pending where network_id = ${network_id})
      or exists (
        select from looked_at s cross join lateral (
          select from balance where wallet_id = s.wallet_id order by asset_type, create_time limit 1) b)
      as may`.execute(trx)
  return rows[0]!.may
}

/** Whether a walk that reads all balances again is under way. */
export const isReopening = async (trx: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from balance_reopening where network_id = ${network_id}`.execute(trx)
  return rows.length > 0
}

/** Lets what is still to be read again be read at an earlier block, because others left the chain. */
export const lowerReopening = async (
  trx: Db,
  network_id: number,
  number: number,
): Promise<void> => {
  await sql`
    update balance_reopening set block_number = ${number}
    where network_id = ${network_id} and block_number > ${number}`.execute(trx)
}

type ReopeningRow = RowOf<typeof walletTables.balance_reopening>

/** How much of a walk one page takes. Addresses count, because any number of them may have no balance. */
type PageLimits = { limit: number; most_addresses: number }

/** Of an address `t`: `asset_id` in its order, and as `is_work` whether the walk concerns that balance. */
type Assets = (bounds: { beyond: ReturnType<typeof sql>; limit: number }) => ReturnType<typeof sql>

/**
 * The next balances of a walk as `page`: at most `limit`, and of at most `most_addresses`. `walked` has their count and
 * whether they are the last ones; `moved` stores the position of the walk.
 */
const nextPage = (
  { network_id, wallet_id, address, address_organization_id, asset_id }: ReopeningRow,
  { assets, limit, most_addresses }: PageLimits & { assets: Assets },
) => {
  // An earlier version walked along the wallets, and its position means nothing here. It also knows nothing of
  // the organization when it begins a walk again.
  const isBegun = wallet_id === null && address !== null && address_organization_id !== null
  // As parameters, which the index takes as its start: joined, every page walked all addresses before its own.
  const position = sql`(${address}::bytea, ${address_organization_id}::uuid)`
  // Without an asset the walk is done with the address.
  const beyondAddress = isBegun
    ? sql`and (address, organization_id) ${sql.raw(asset_id === null ? '>' : '>=')} ${position}`
    : sql``
  // Inside of the lists of assets, where it is a bound of their keys: an address with very many assets was read from its first
  // one for every page. No asset has the lowest id.
  const beyond =
    isBegun && asset_id !== null
      ? sql`and asset_id > case when (t.address, t.organization_id) = ${position}
          then ${asset_id}::uuid else ${lowestId}::uuid end`
      : sql``
  // Along the key of the addresses, and without a join: in the order of the wallets, depending on statistics, all addresses that were
  // left were sorted for every page: 0.5 to 10 s at 300,000 balances. This takes 20 ms.
  const addresses = sql`
    select wallet_id, address, organization_id from wallet_address
    where network_id = ${network_id} ${beyondAddress} order by address, organization_id`
  // The assets are ordered inside and not outside: an outer order lets the planner read all addresses of the page before it sorts. The nested
  // loop of a lateral join keeps the order of both. Neither list of addresses is materialized: a full page ends the first one
  // early, and the second one is not begun then.
  return sql`
    page as materialized (
      select t.wallet_id, t.address, b.asset_id, t.organization_id, b.is_work
      from (${addresses} limit ${most_addresses}) t
      cross join lateral (${assets({ beyond, limit })}) b limit ${limit}),
    counted as materialized (select count(*)::int8 as count from page),
    last as materialized (
      (select address, organization_id, asset_id from page
        where (select count from counted) = ${limit}
        order by address desc, organization_id desc, asset_id desc limit 1)
      union all
      select address, organization_id, null
      from (${addresses} offset ${most_addresses - 1} limit 1) t
      where (select count from counted) < ${limit}),
    moved as (
      update balance_reopening o set wallet_id = null, address = l.address,
        address_organization_id = l.organization_id, asset_id = l.asset_id
      from last l where o.network_id = ${network_id}),
    walked as (
      select count, not exists (select 1 from last) as is_last from counted)`
}

type Walked = { count: number; is_last: boolean }

/** 0 only at the end: a page may have no balance. */
const walkedOf = ({ count, is_last }: Walked): number => (is_last ? count : Math.max(count, 1))

const ofAddress: Assets = ({ beyond, limit }) => sql`
  select asset_id, true as is_work from balance
  where address = t.address and wallet_id = t.wallet_id ${beyond} order by asset_id limit ${limit}`

/**
 * Lowers the next balances whose blocks are gone, and returns how many it looked at, at least 1 until that is done; 0 where
 * nothing is to be lowered. Otherwise a reading of the new blocks would lose against a balance of a later block that is gone. Each
 * stays what is shown until it is read, but net changes are not added to it: it holds those of the blocks that are stored again.
 */
export const lowerPage = async (
  trx: Db,
  { network_id, now, ...limits }: PageLimits & { network_id: number; now: Date },
): Promise<number> => {
  const { rows: open } = await sql<ReopeningRow>`
    select * from balance_reopening
    where network_id = ${network_id} and lower_to is not null for update`.execute(trx)
  const [reopening] = open
  if (!reopening) return 0
  const { lower_to } = reopening
  const { rows } = await sql<Walked>`
    with ${nextPage(reopening, { assets: ofAddress, ...limits })},
    held as materialized (
      select b.wallet_id, b.address, b.asset_id from page p join balance b
        on b.address = p.address and b.wallet_id = p.wallet_id and b.asset_id = p.asset_id
      where b.as_of_block > ${lower_to}
      order by b.wallet_id, b.address, b.asset_id for update of b),
    lowered as (
      update balance b set as_of_block = ${lower_to}, is_stale = true, update_time = ${now} from held h
      where b.address = h.address and b.wallet_id = h.wallet_id and b.asset_id = h.asset_id)
    select * from walked`.execute(trx)
  const walked = rows[0]!
  if (walked.is_last)
    await sql`
      update balance_reopening set lower_to = null, ${beginning}
      where network_id = ${network_id}`.execute(trx)
  return walkedOf(walked)
}

/** Whether balances are still to be lowered because their blocks are gone. */
export const isLowering = async (db: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from balance_reopening
    where network_id = ${network_id} and lower_to is not null`.execute(db)
  return rows.length > 0
}

/**
 * Makes work of the next balances that are to be read again, and returns how many these are, at least 1 until that is done;
 * 0 where none are, or the cursor has not reached the block. The caller must hold the cursor's lock.
 */
export const reopenPage = async (
  trx: Db,
  {
    network_id,
    head,
    now,
    ...limits
  }: PageLimits & { network_id: number; head: number; now: Date },
): Promise<number> => {
  // Once the block has the confirmations of all wallets but the deep ones: if work became due later than
  // it is made, all pages would become due at once, and before newer work.
  const { rows: open } = await sql<ReopeningRow>`
    select * from balance_reopening
    where network_id = ${network_id} and lower_to is null and block_number <= ${head}
      and block_number + (
        select coalesce(greatest(max(confirmation), 1), 1) from wallet
        where network_id = ${network_id} and remove_time is null
          and confirmation <= ${deepConfirmation}) - 1 <= ${head}
    for update`.execute(trx)
  const [reopening] = open
  if (!reopening) return 0
  const { block_number } = reopening
  // Readings that wait for confirmation lack the same changes. They stay: each is the balance of its own block once that
  // is confirmed. Those of later blocks are passed and not filtered, so that any number of them has a bound too. Each list has
  // as many assets as the page, of which the first are then in both.
  const assets: Assets = ({ beyond, limit }) => sql`
    select asset_id, bool_or(is_work) as is_work from (
      (${ofAddress({ beyond, limit })})
      union all
      (select distinct on (asset_id) asset_id, block_number < ${block_number} from balance_pending
        where address = t.address and wallet_id = t.wallet_id ${beyond}
        order by asset_id, block_number limit ${limit})) a
    group by asset_id order by asset_id limit ${limit}`
  const { rows } = await sql<Walked>`
    with ${nextPage(reopening, { assets, ...limits })},
    made as (
      insert into balance_change (wallet_id, address, asset_id, block_number, organization_id,
        network_id, due_block, ahead, is_reread)
      select wallet_id, address, asset_id, ${block_number}::int8, organization_id,
        ${network_id}::int2, ${head}::int8, true, true
      from page where is_work
      on conflict (wallet_id, address, asset_id, block_number) do update
        set delta = null, due_block = excluded.due_block, ahead = true, is_reread = true)
    select * from walked`.execute(trx)
  const walked = rows[0]!
  if (walked.is_last)
    await sql`
      with ended as (
        delete from balance_reopening where network_id = ${network_id} returning gap_time)
      update network set reopen_time = ${now} where network_id = ${network_id}
        and exists (select from ended where gap_time is not null)`.execute(trx)
  return walkedOf(walked)
}
