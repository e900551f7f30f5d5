// Work for balances: which pair of address and asset has to be read, because of which block, and from which head on. Work
// that fails is postponed by doubling pauses of 4 to 8,192 blocks. The oldest row of a pair then stands for all that are
// due, so a token that always fails collects no rows.

import { sql } from 'kysely'
import type { AssetKey } from '../../contract/records/assets.ts'
import { type BulkRow, insertRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import { confirmedBlock, type DuePage, duePage } from './due-page.ts'

/** Balance work that is due. */
export type DueBalance = AssetKey & {
  wallet_id: string
  address: Buffer
  asset_id: string
  organization_id: string
  confirmation: number
  /** The block that made this work. */
  block_number: number
  /** Whether it may be read before the block is confirmed. */
  ahead: boolean | null
  token_account_address: Buffer | null
}

/**
 * Wallets that ask for more confirmations are read at the newest block, and the balance is kept until
 * that one is confirmed. Full nodes have the states of the last 128 blocks (geth), some services of 64.
 */
export const deepConfirmation = 32

// Of a wallet with very many confirmations, at most about so many balances of a pair are kept.
const mostKept = 128

/** The head at which a block's balance is read for a wallet with that many confirmations, if that is before they are there. */
export const aheadBlockOf = (block_number: number, confirmation: number): number | undefined => {
  // Others are read when their block is confirmed, because nodes still have its state then.
  if (confirmation <= deepConfirmation) return undefined
  // Blocks are read in steps for very deep wallets, so that the kept readings of a pair stay
  // bounded.
  const step = Math.max(1, Math.floor(confirmation / mostKept))
  return Math.ceil(block_number / step) * step
}

/** Notes balance work; what is noted already stays as it is. */
export const insertBalanceChanges = async (
  trx: Db,
  changes: readonly BulkRow<'balance_change'>[],
): Promise<void> => {
  await insertRows(trx, 'balance_change', changes)
}

// Whether a pair has a balance to which net changes can be added. One whose block was taken back holds some of them.
const baselineOf = sql`
  select 1 from balance b
  where b.is_stale is not true and b.wallet_id = c.wallet_id and b.address = c.address and b.asset_id = c.asset_id`

/** Whether a pair of `c` has a reading that this head makes due: it becomes the balance before net changes are added. */
const hasDueReading = (head: number) => sql`
  exists (select from balance_pending p
    where p.address = c.address and p.wallet_id = c.wallet_id and p.asset_id = c.asset_id and p.due_block <= ${head})`

/**
 * A page of the work that this head makes due and that needs a reading, in turns of the organizations and the oldest of each
 * first; a pair stands there once per block that made it. Net changes that `applyDeltas` adds are left to it, and none of them
 * takes the place of work: those that it did not look at yet have a page of their own.
 */
export const listDueBalances = async (
  db: Db,
  page: DuePage,
): Promise<(DueBalance & { is_early: boolean })[]> => {
  const { network_id, head } = page
  // The limit is inside: joining all due rows first would read the whole backlog of a catch-up.
  // Of a wallet whose confirmation was changed, work may be due by the old one. What a reorganization lets be read again at a block
  // that lacks confirmations is no such work: its balance is of that block.
  const { rows } = await sql<DueBalance & { is_early: boolean }>`
    select c.wallet_id, c.address, c.asset_id, c.organization_id, c.block_number, c.ahead,
      w.confirmation, a.asset_type, a.contract_address, a.token_id, i.token_account_address,
      case when c.delta is null and c.ahead is not true and w.confirmed_block is not null
          and c.block_number > ${confirmedBlock(head)}
        then not exists (select from balance b
          where b.wallet_id = c.wallet_id and b.address = c.address and b.asset_id = c.asset_id
            and (b.as_of_block >= c.block_number or b.is_stale))
        else false end as is_early
    from (select * from (${duePage('unread', page)}) u union all select * from (${duePage('deltas', page)}) d) c
    join wallet w on w.wallet_id = c.wallet_id
    join asset a on a.asset_id = c.asset_id
    left join token_import i on i.network_id = ${network_id} and i.address = c.address
      and i.asset_id = c.asset_id and i.organization_id = c.organization_id
    where c.delta is null or not (exists (${baselineOf}) or ${hasDueReading(head)})`.execute(db)
  return rows
}

type Pair = Pick<DueBalance, 'wallet_id' | 'address' | 'asset_id'>

/** The work of some pairs. */
const workOf = (pairs: readonly Pair[]) => {
  const wallet_ids = pairs.map(({ wallet_id }) => wallet_id)
  const addresses = pairs.map(({ address }) => address)
  const asset_ids = pairs.map(({ asset_id }) => asset_id)
  // Three arrays, one parameter each: the statement stays the same for any number of pairs.
  return sql`(c.wallet_id, c.address, c.asset_id) in (
      select * from unnest(${wallet_ids}::uuid[], ${addresses}::bytea[], ${asset_ids}::uuid[]))`
}

/**
 * Work that cannot be done is tried again after so many blocks, and each time after twice as many. Few at first: a token
 * may be registered before its contract is confirmed. From 32 on, such a token had no balance for 6 minutes on Ethereum.
 */
export const firstPostponement = 4
// About a day on a chain with blocks of twelve seconds.
const lastPostponement = 8_192

/**
 * Lets the work of pairs that a head made due wait for a later one, and says whose there was. Of each
 * pair the oldest stays, which stands for all: a contract that always fails must not collect work. It loses its net
 * change: that is confirmed, so a later reading holds it and nothing may take it off again.
 */
export const postponeBalanceChanges = async (
  trx: Db,
  pairs: readonly Pair[],
  head: number,
): Promise<Pair[]> => {
  if (pairs.length === 0) return []
  // The pause is the age of the work, so it doubles with each attempt, between the two bounds.
  const { rows } = await sql<Pair>`
    with due as (
      select c.wallet_id, c.address, c.asset_id, min(c.block_number) as block_number
      from balance_change c where ${workOf(pairs)} and c.due_block <= ${head}
      group by c.wallet_id, c.address, c.asset_id),
    merged as (
      delete from balance_change c using due d
      where c.wallet_id = d.wallet_id and c.address = d.address and c.asset_id = d.asset_id
        and c.block_number > d.block_number and c.due_block <= ${head})
    update balance_change c set delta = null, due_block = ${head}::int8
      + least(greatest(${head}::int8 - c.block_number, ${firstPostponement}), ${lastPostponement})
    from due d
    where c.wallet_id = d.wallet_id and c.address = d.address and c.asset_id = d.asset_id
      and c.block_number = d.block_number
    returning c.wallet_id, c.address, c.asset_id`.execute(trx)
  return rows
}

/** Lets the work of pairs that a head made due go behind what the next head makes due. */
export const deferBalanceChanges = async (
  db: Db,
  pairs: readonly Pair[],
  head: number,
): Promise<void> => {
  if (pairs.length === 0) return
  await sql`
    update balance_change c set due_block = ${head}::int8 + 1
    where ${workOf(pairs)} and c.due_block <= ${head}`.execute(db)
}

/** A pair whose work was taken away, and the block of the last net change of it. */
type SettledPair = Pair & { last_delta: number | null }

/**
 * Takes away the work of pairs up to a block, because it is done, and says whose there was. Of what is
 * kept until it is confirmed, net changes stay that are not confirmed themselves, or for which there is
 * a balance to which they are added.
 */
export const settleBalanceChanges = async (
  trx: Db,
  pairs: readonly Pair[],
  { block_number, isKept, head }: { block_number: number; isKept: boolean; head: number },
): Promise<SettledPair[]> => {
  if (pairs.length === 0) return []
  const { rows } = await sql<SettledPair>`
    with settled as (
      delete from balance_change c
      where ${workOf(pairs)} and c.block_number <= ${block_number}
        ${isKept ? sql`and (c.delta is null or (c.due_block <= ${head} and not exists (${baselineOf})))` : sql``}
      returning c.*)
    select wallet_id, address, asset_id, max(block_number) filter (where delta is not null) as last_delta
    from settled group by wallet_id, address, asset_id`.execute(trx)
  return rows
}

/**
 * Adds a page of the net changes that this head makes due to the balances that have a baseline, and forgets
 * them; changes that the baseline holds already are only forgotten. The balances are locked first: a baseline that is stored
 * meanwhile must not get what it holds once more. Says how many were done, and how many were set aside: without a
 * baseline they wait for a reading, and with fewer confirmations than their wallet has by now for those. They take no place in
 * the next page.
 */
export const applyDeltas = async (
  trx: Db,
  { now, ...page }: DuePage & { now: Date },
): Promise<{ count: number; set_aside: number }> => {
  // Of each pair the first ones in the order of their blocks, so that the balance is always that of a block. Those of earlier
  // blocks are confirmed with a later one, whatever block they wait for: a change of the confirmation moves them in pages.
  const { rows } = await sql<{ count: number } & (SetAside | { wallet_id: null })>`
    with due as materialized (
      select c.wallet_id, c.address, c.asset_id, c.block_number, c.ahead,
        c.block_number <= (select ${confirmedBlock(page.head)} from wallet w where w.wallet_id = c.wallet_id)
          as is_confirmed
      from (
        select * from (${duePage('deltas', page)}) d
        union all
        -- Those for which there is a balance by now, though not by a reading for them.
        select * from (${duePage('unread', page)}) u where delta is not null) c
      where not ${hasDueReading(page.head)}),
    pairs as materialized (
      select wallet_id, address, asset_id, max(block_number) as last, count(*) as count
      from due where is_confirmed
      group by wallet_id, address, asset_id
      order by wallet_id, address, asset_id),
    -- Looked up one by one, in that order. Joined, the balances of all networks may be read: rows that wait for many
    -- confirmations let the planner expect that many are due.
    held as materialized (
      select b.*, p.last, p.count from pairs p cross join lateral (
        select b.wallet_id, b.address, b.asset_id, b.as_of_block from balance b
        where b.is_stale is not true and b.wallet_id = p.wallet_id and b.address = p.address
          and b.asset_id = p.asset_id
        for update) b),
    next as materialized (
      select c.* from held h cross join lateral (
        select c.wallet_id, c.address, c.asset_id, c.block_number, h.as_of_block from balance_change c
        where c.wallet_id = h.wallet_id and c.address = h.address and c.asset_id = h.asset_id
          and c.block_number <= h.last and c.delta is not null
        order by c.block_number
        limit greatest(h.count, ${page.limit}::int8 / (select count(*) from held))) c),
    done as (
      delete from balance_change c using next n
      where c.wallet_id = n.wallet_id and c.address = n.address and c.asset_id = n.asset_id
        and c.block_number = n.block_number
      returning c.*, n.as_of_block),
    total as (
      select wallet_id, address, asset_id, sum(delta) as delta, max(block_number) as block_number
      from done where block_number > as_of_block group by wallet_id, address, asset_id),
    added as (
      update balance b set balance = b.balance + t.delta, as_of_block = t.block_number,
        update_time = ${now}
      from total t
      where b.wallet_id = t.wallet_id and b.address = t.address and b.asset_id = t.asset_id)
    select n.count, a.wallet_id, a.address, a.asset_id, a.block_number, a.is_confirmed
    from (select count(*) as count from done) n left join (
      select * from due d where not is_confirmed or (ahead is not true and not exists (
        select from held h
        where h.wallet_id = d.wallet_id and h.address = d.address and h.asset_id = d.asset_id))) a on true`.execute(
    trx,
  )
  const aside = rows.filter((row) => row.wallet_id !== null)
  const { unknown = [], early = [] } = Object.groupBy(aside, ({ is_confirmed }) =>
    is_confirmed ? 'unknown' : 'early',
  )
  await markUnknown(trx, unknown)
  await postponeEarly(trx, early)
  return { count: Number(rows[0]!.count), set_aside: aside.length }
}

type ChangeRow = Pair & { block_number: number }

/** A net change that is not added, although it is due. */
type SetAside = ChangeRow & { is_confirmed: boolean }

const rowsOf = (changes: readonly ChangeRow[]) => {
  const column = <key extends keyof ChangeRow>(key: key) => changes.map((change) => change[key])
  return sql`unnest(${column('wallet_id')}::uuid[], ${column('address')}::bytea[], ${column('asset_id')}::uuid[],
    ${column('block_number')}::int8[]) as r (wallet_id, address, asset_id, block_number)`
}

const isRow = sql`c.wallet_id = r.wallet_id and c.address = r.address and c.asset_id = r.asset_id
  and c.block_number = r.block_number`

const markUnknown = async (trx: Db, changes: readonly ChangeRow[]): Promise<void> => {
  if (changes.length === 0) return
  await sql`
    update balance_change c set ahead = true from ${rowsOf(changes)}
    where ${isRow} and c.delta is not null`.execute(trx)
}

/** Lets net changes that waited for a reading be added, because there is a balance now. */
export const unmarkKnown = async (trx: Db, pairs: readonly Pair[]): Promise<void> => {
  if (pairs.length === 0) return
  await sql`
    update balance_change c set ahead = null
    where ${workOf(pairs)} and c.delta is not null and c.ahead`.execute(trx)
}

/** Lets work wait for the confirmations that its wallet has by now. The caller must hold the cursor. */
export const postponeEarly = async (trx: Db, changes: readonly ChangeRow[]): Promise<void> => {
  if (changes.length === 0) return
  await sql`
    update balance_change c set due_block = c.block_number + greatest(w.confirmation, 1) - 1
    from ${rowsOf(changes)} join wallet w on w.wallet_id = r.wallet_id
    where ${isRow}`.execute(trx)
}

/**
 * Takes back the work of blocks above a number. Balances that were read from `suspect_from` on are
 * read again at that number now; those that had a reading before it when its block is confirmed,
 * because the dropped work may have stood for blocks below as well.
 */
export const reopenBalances = async (
  trx: Db,
  {
    network_id,
    above,
    suspect_from,
    now,
  }: { network_id: number; above: number; suspect_from: number; now: Date },
): Promise<void> => {
  // One statement with one snapshot: work is removed, and what it stood for is read from the same
  // state. Balances whose value came from removed blocks are read at once, the others when they are
  // confirmed.
  await sql`
    with undone as (
      delete from balance_change where network_id = ${network_id} and block_number > ${above}
      returning wallet_id, address, asset_id, organization_id, is_reread),
    unread as (
      delete from balance_reading
      where network_id = ${network_id} and block_number >= ${suspect_from}
      returning wallet_ids, addresses, asset_ids),
    gone as (
      select wallet_id, address, asset_id, false as was_read from undone
      union all
      select p.wallet_id, p.address, p.asset_id, true
      from unread u cross join lateral unnest(u.wallet_ids, u.addresses, u.asset_ids)
        p (wallet_id, address, asset_id)),
    suspect as (
      select b.wallet_id, b.address, b.asset_id, b.organization_id, b.as_of_block, w.confirmation,
        bool_or(g.was_read or b.as_of_block > ${above}) as applied, bool_or(not g.was_read) as undone
      from gone g join wallet w on w.wallet_id = g.wallet_id
      join balance b on b.wallet_id = g.wallet_id and b.address = g.address
        and b.asset_id = g.asset_id
      group by b.wallet_id, b.address, b.asset_id, b.organization_id, b.as_of_block, w.confirmation),
    lowered as (
      update balance b set as_of_block = ${above}, is_stale = true, update_time = ${now} from suspect s
      where b.wallet_id = s.wallet_id and b.address = s.address and b.asset_id = s.asset_id
        and b.as_of_block > ${above})
    insert into balance_change as c (wallet_id, address, asset_id, block_number, organization_id,
      network_id, due_block, ahead, is_reread)
    -- A balance of a block below the common one is read there again: the common one may lack confirmations.
    select wallet_id, address, asset_id, least(as_of_block, ${above}::int8), organization_id,
      ${network_id}::int2, least(as_of_block, ${above}::int8), null::boolean, null::boolean
    from suspect where applied
    union all
    select wallet_id, address, asset_id, ${above}::int8, organization_id, ${network_id}::int2,
      ${above}::int8 + case when confirmation > ${deepConfirmation} then 0
        else greatest(confirmation, 1) - 1 end,
      case when confirmation > ${deepConfirmation} then true end, null::boolean
    from suspect where not applied or (undone and as_of_block < ${above})
    union all
    -- Of one that is not known yet, no block that is left names the work.
    select distinct wallet_id, address, asset_id, ${above}::int8, organization_id, ${network_id}::int2,
      ${above}::int8, true, true
    from undone u where is_reread and not exists (
      select from balance b where b.wallet_id = u.wallet_id and b.address = u.address
        and b.asset_id = u.asset_id)
    -- A net change of that block stays, and is due when it is confirmed: balance_reopening causes the reading.
    on conflict (wallet_id, address, asset_id, block_number) do update
      set due_block = least(c.due_block, excluded.due_block),
        ahead = case when excluded.ahead then c.ahead end,
        is_reread = coalesce(c.is_reread, excluded.is_reread)
      where c.delta is null`.execute(trx)
  // What was kept is read again at the newest block that is left.
  await sql`
    with gone as (
      delete from balance_pending
      where network_id = ${network_id} and block_number >= ${suspect_from}
      returning wallet_id, address, asset_id, organization_id)
    insert into balance_change as c (wallet_id, address, asset_id, block_number, organization_id,
      network_id, due_block, ahead, is_reread)
    select distinct wallet_id, address, asset_id, ${above}::int8, organization_id,
      ${network_id}::int2, ${above}::int8, true, true
    from gone
    on conflict (wallet_id, address, asset_id, block_number) do update set is_reread = true
      where c.delta is null`.execute(trx)
}

/**
 * Lets balances be read that are not known yet, because of blocks behind the head. Of each pair these are the first of its
 * blocks, which a reorganization leaves alone for longest, and those that lack confirmations at the head.
 */
export const openNewBalances = async (
  trx: Db,
  touched: readonly (Pair & { block_number: number })[],
  { network_id, head }: { network_id: number; head: number },
): Promise<void> => {
  if (touched.length === 0) return
  const wallet_ids = touched.map(({ wallet_id }) => wallet_id)
  const addresses = touched.map(({ address }) => address)
  const asset_ids = touched.map(({ asset_id }) => asset_id)
  const block_numbers = touched.map(({ block_number }) => block_number)
  const depth = sql`greatest(w.confirmation, 1)`
  // A net change of the same block stays. It causes the reading as well, and an earlier reading takes it off until it is
  // confirmed.
  await sql`
    insert into balance_change as c (wallet_id, address, asset_id, block_number, organization_id, network_id,
      due_block, ahead)
    select p.wallet_id, p.address, p.asset_id, p.block_number, w.organization_id, ${network_id}::int2,
      case when w.confirmation > ${deepConfirmation} then ${head}::int8
        else p.block_number + ${depth} - 1 end,
      case when w.confirmation > ${deepConfirmation} then true end
    from (
      select distinct *, min(block_number) over (partition by wallet_id, address, asset_id) as first
      from unnest(${wallet_ids}::uuid[], ${addresses}::bytea[], ${asset_ids}::uuid[],
        ${block_numbers}::int8[]) p (wallet_id, address, asset_id, block_number)) p
    join wallet w on w.wallet_id = p.wallet_id
    where (p.block_number = p.first or p.block_number + ${depth} - 1 > ${head}::int8)
      and not exists (select from balance b where b.wallet_id = p.wallet_id
        and b.address = p.address and b.asset_id = p.asset_id)
    on conflict (wallet_id, address, asset_id, block_number) do update
      set due_block = excluded.due_block, ahead = excluded.ahead where c.delta is null`.execute(trx)
}
