// Readings that wait for the confirmation of their wallet. Nodes keep few states, so a wallet with more than
// `deepConfirmation` confirmations is read at the newest block, and the reading becomes the balance when its block is deep
// enough.

import { sql } from 'kysely'
import { unnestRows } from '../pg/bulk.ts'
import type { Db } from '../pg/database.ts'
import type { CursorRow } from '../tracking/blocks.ts'
import { type Reading, storeReadings, whereTracked } from './balances.ts'
import { unmarkKnown } from './changes.ts'
import { confirmedBlock, type DuePage, duePage } from './due-page.ts'

/** The cursor of a chain, and what waits besides balance work. */
export type Standing = CursorRow & {
  has_changes: boolean
  has_pending: boolean
  has_reopening: boolean
}

/** The state of a chain; undefined before its first block. */
export const findStanding = async (db: Db, network_id: number): Promise<Standing | undefined> => {
  // One statement for the questions of each round, because most rounds find nothing to do. The first one that is due is
  // taken from the index: for `exists`, all that wait may be read to find that none is due.
  const { rows } = await sql<Standing>`
    select c.*,
      coalesce((select b.due_block from balance_change b
        where b.network_id = c.network_id order by b.due_block limit 1) <= c.block_number, false) as has_changes,
      coalesce((select p.due_block from balance_pending p
        where p.network_id = c.network_id order by p.due_block limit 1) <= c.block_number, false) as has_pending,
      exists (select 1 from balance_reopening o where o.network_id = c.network_id) as has_reopening
    from tracker_cursor c where c.network_id = ${network_id} and c.name = 'tracker'`.execute(db)
  return rows[0]
}

/** A reading that is kept until its block has the wallet's confirmation; one that could be read. */
export type PendingReading = Reading & { since_block: number }

const columns = [
  'wallet_id',
  'address',
  'asset_id',
  'block_number',
  'organization_id',
  'asset_type',
  'contract_address',
  'balance',
  'since_block',
] as const

/**
 * Keeps readings of unconfirmed blocks, of addresses and tokens that are still tracked. The caller must hold the cursor: a change
 * of the confirmation moves them before or after.
 */
export const insertPending = async (
  trx: Db,
  readings: readonly PendingReading[],
  network_id: number,
): Promise<void> => {
  if (readings.length === 0) return
  const rows = readings.map((row) => ({ ...row, block_number: row.as_of_block }))
  const names = columns.map((name) => sql.ref(name))
  await sql`
    insert into balance_pending as p (${sql.join(names)}, due_block, network_id)
    select r.*, greatest(r.block_number, r.since_block + greatest(w.confirmation, 1) - 1), ${network_id}::int2
    from ${unnestRows('balance_pending', columns, rows)} r
    join wallet w on w.wallet_id = r.wallet_id
    ${whereTracked(network_id)}
    on conflict (address, wallet_id, asset_id, block_number) do update
      set since_block = least(p.since_block, excluded.since_block),
        due_block = least(p.due_block, excluded.due_block)`.execute(trx)
}

/**
 * Makes balances of a page of the readings that this head makes due, and gives them; the newest of each pair counts.
 * Net changes that the reading holds and that are not confirmed are taken off: they are added when they
 * are. Of what is not tracked any more nothing is stored. Readings that hold changes of a gap are postponed instead, until the
 * block after it is confirmed: the changes are in no row that could be subtracted. The work is older than the gap, or the node
 * was ahead and the gap was found later. So are those that wait for fewer confirmations than the wallet has by now: a change of
 * it moves them in pages, between which blocks come. Says how many it looked at.
 */
export const applyPending = async (
  trx: Db,
  { now, ...page }: DuePage & { now: Date },
): Promise<{ applied: Reading[]; count: number }> => {
  const { network_id, head } = page
  // The last gap that each reading can hold, also one that was filled since: with the last of all, a gap behind the block of a
  // reading hid an earlier one that it holds. Gaps do not overlap, so it is found by the key.
  // `as_of_block` is the confirmed block, not the block of the reading: later net changes are added
  // to it. It is never below `since_block`, nor below what was shown before the wallet asked for more confirmations.
  const { rows } = await sql<
    ((Reading & { is_waiting: boolean | null }) | { wallet_id: null }) & { count: number }
  >`
    with page as materialized (
      select p.*, greatest(w.confirmation, 1) - 1 as depth, ${confirmedBlock(head)} as confirmed_block, g.known_from
      from (${duePage('pending', page)}) d cross join lateral (
        select * from balance_pending p
        where p.address = d.address and p.wallet_id = d.wallet_id and p.asset_id = d.asset_id
          and p.block_number = d.block_number
        for update) p
      left join wallet w on w.wallet_id = p.wallet_id
      left join lateral (
        select to_block + 1 as known_from from tracker_gap
        -- One that was read for its own block is confirmed with all that it holds.
        where p.since_block < p.block_number
          and network_id = ${network_id} and from_block <= p.block_number
        order by from_block desc limit 1) g on p.since_block < g.known_from),
    early as materialized (
      select address, wallet_id, asset_id, block_number, depth, coalesce(known_from, since_block) as since_block
      from page where confirmed_block is not null and (known_from is not null or since_block > confirmed_block)),
    postponed as (
      update balance_pending p set since_block = e.since_block,
        due_block = greatest(p.block_number, e.since_block + e.depth)
      from early e
      where p.address = e.address and p.wallet_id = e.wallet_id and p.asset_id = e.asset_id
        and p.block_number = e.block_number),
    gone as (
      delete from balance_pending p using page d
      where p.address = d.address and p.wallet_id = d.wallet_id and p.asset_id = d.asset_id
        and p.block_number = d.block_number
        and not exists (select from early e
          where e.address = p.address and e.wallet_id = p.wallet_id and e.asset_id = p.asset_id
            and e.block_number = p.block_number)
      returning p.*, d.confirmed_block),
    shown as (
      select g.*, least(g.block_number, g.confirmed_block) as as_of_block
      from gone g where g.confirmed_block is not null)
    select n.count, s.wallet_id, s.organization_id, s.address, s.asset_id, s.asset_type,
      s.contract_address, s.balance - coalesce(l.delta, 0) as balance, s.as_of_block, l.is_waiting
    from (select count(*) as count from page) n left join (shown s
    left join lateral (
      select sum(c.delta) filter (where c.block_number <= s.block_number) as delta, bool_or(c.ahead) as is_waiting
      from balance_change c
      where c.wallet_id = s.wallet_id and c.address = s.address and c.asset_id = s.asset_id
        and c.delta is not null and c.block_number > s.as_of_block) l
      on true) on true
    order by s.block_number`.execute(trx)
  // One statement changes a row once.
  const newest = new Map(
    rows.flatMap(({ count: _, ...row }) =>
      row.wallet_id === null
        ? []
        : [[`${row.wallet_id}/${row.address.toString('latin1')}/${row.asset_id}`, row]],
    ),
  )
  const applied = [...newest.values()]
  await storeReadings(trx, applied, { network_id, now })
  await unmarkKnown(
    trx,
    applied.filter(({ is_waiting }) => is_waiting),
  )
  return { applied, count: Number(rows[0]!.count) }
}
