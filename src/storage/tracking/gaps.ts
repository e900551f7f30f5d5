// Blocks that are not stored completely, with the reason. A gap is open until its blocks are known or leave the chain; it
// is split when only some of them are known. A closed gap stays as a row: it says whether a walk that reads all balances
// again covers its blocks (`reopen_time`). `workers/tracker/refill.ts` asks again with doubling pauses.

import { sql } from 'kysely'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { walletTables } from '../wallets/tables.ts'
import { openEvent, resolveEvent } from './operational-events.ts'

/** Blocks that could not be read, or not whole. */
export type GapRow = RowOf<typeof walletTables.tracker_gap>

/** Consecutive blocks and why they are not known. */
export type GapRange = { from_block: number; to_block: number; reason: string }

// How long after it was noticed a gap is first asked for again.
const firstPause = sql`interval '30 seconds'`

/** Notes blocks that could not be read; the next attempt is due soon. No walk that reads balances again covers them yet. */
export const insertGap = async (
  trx: Db,
  gap: GapRange & { network_id: number; create_time: Date },
): Promise<void> => {
  const { network_id, from_block, to_block, reason, create_time } = gap
  // Of blocks in this place that left the chain since, a closed one may be there.
  await sql`
    insert into tracker_gap (network_id, from_block, to_block, reason, create_time, attempts,
      next_time)
    values (${network_id}, ${from_block}, ${to_block}, ${reason}, ${create_time}, 0,
      ${create_time}::timestamptz + ${firstPause})
    on conflict (network_id, from_block) do update set to_block = excluded.to_block,
      reason = excluded.reason, create_time = excluded.create_time, close_time = null, attempts = 0,
      next_time = excluded.next_time, reopen_time = null`.execute(trx)
}

/** Notes a block of which not everything could be known; those that follow each other are one gap. */
export const extendGap = async (
  trx: Db,
  gap: { network_id: number; block_number: number; reason: string; now: Date },
): Promise<void> => {
  const { network_id, block_number, reason, now } = gap
  const { numAffectedRows } = await sql`
    update tracker_gap set to_block = ${block_number}, reopen_time = null
    where network_id = ${network_id} and to_block = ${block_number - 1} and reason = ${reason}
      and close_time is null`.execute(trx)
  if (numAffectedRows) return
  const block = { from_block: block_number, to_block: block_number }
  await insertGap(trx, { network_id, ...block, reason, create_time: now })
}

/** Takes back the gaps above a block, whose places other blocks will take. */
export const deleteGapsAbove = async (
  trx: Db,
  network_id: number,
  number: number,
): Promise<void> => {
  await sql`
    delete from tracker_gap where network_id = ${network_id} and from_block > ${number}`.execute(
    trx,
  )
  await sql`
    update tracker_gap set to_block = ${number}
    where network_id = ${network_id} and to_block > ${number}`.execute(trx)
}

/** Why the last block of an open gap could not be known whole, if this is one. */
export const findGapAt = async (
  db: Db,
  network_id: number,
  block_number: number,
): Promise<string | undefined> =>
  (
    await db
      .selectFrom('tracker_gap')
      .select('reason')
      .where('network_id', '=', network_id)
      .where('to_block', '=', block_number)
      .where('close_time', 'is', null)
      .executeTakeFirst()
  )?.reason

/** Whether some of these blocks are in an open gap. */
export const isInGap = async (
  db: Db,
  network_id: number,
  { from, to }: { from: number; to: number },
): Promise<boolean> =>
  (await db
    .selectFrom('tracker_gap')
    .select('from_block')
    .where('network_id', '=', network_id)
    .where('close_time', 'is', null)
    .where('from_block', '<=', to)
    .where('to_block', '>=', from)
    .limit(1)
    .executeTakeFirst()) !== undefined

/** How many open gaps are listed at most. */
const mostListed = 1_000

/** The gaps that are open, the oldest blocks first. */
export const listOpenGaps = async (db: Db, network_id: number): Promise<GapRow[]> =>
  await db
    .selectFrom('tracker_gap')
    .selectAll()
    .where('network_id', '=', network_id)
    .where('close_time', 'is', null)
    .orderBy('from_block')
    .limit(mostListed)
    .execute()

/** The open gap whose next attempt has been due for longest. */
export const findDueGap = async (
  db: Db,
  network_id: number,
  now: Date,
): Promise<GapRow | undefined> => {
  const { rows } = await sql<GapRow>`
    select * from tracker_gap
    where network_id = ${network_id} and close_time is null
      and coalesce(next_time, '-infinity') <= ${now}
    order by next_time nulls first limit 1`.execute(db)
  return rows[0]
}

/** Lets a gap wait for its next attempt. */
export const postponeGap = async (
  db: Db,
  { network_id, from_block }: Pick<GapRow, 'network_id' | 'from_block'>,
  { attempts, next_time }: Pick<GapRow, 'attempts' | 'next_time'>,
): Promise<void> => {
  await sql`
    update tracker_gap set attempts = ${attempts}, next_time = ${next_time}
    where network_id = ${network_id} and from_block = ${from_block} and close_time is null`.execute(
    db,
  )
}

/**
 * Takes blocks that are known now out of the gaps. Of those, `lacking` are still not whole and stay
 * gaps of their own. Says how many gaps there are no longer.
 */
export const coverGaps = async (
  trx: Db,
  covered: {
    network_id: number
    from: number
    to: number
    lacking: ReadonlyMap<number, string>
    now: Date
  },
): Promise<number> => {
  const { network_id, from, to, lacking, now } = covered
  const { rows: gaps } = await sql<GapRow>`
    select * from tracker_gap
    where network_id = ${network_id} and close_time is null
      and from_block <= ${to} and to_block >= ${from}
    order by from_block for update`.execute(trx)
  let closed = 0
  for (const gap of gaps) {
    // The row is replaced by its pieces: its first block is its key, and a piece may begin elsewhere.
    const pieces = split(gap, { from, to, lacking })
    // Nothing more is known of it: the row stays, so that statements that wait for its lock still find it.
    const [piece] = pieces
    if (pieces.length === 1 && piece?.isOpen && piece.reason === gap.reason) continue
    if (pieces.every(({ isOpen }) => !isOpen)) closed++
    await sql`
      delete from tracker_gap
      where network_id = ${network_id} and from_block = ${gap.from_block}`.execute(trx)
    for (const { from_block, to_block, reason, isOpen } of pieces)
      await sql`
        insert into tracker_gap (network_id, from_block, to_block, reason, create_time, close_time,
          attempts, next_time, reopen_time)
        values (${network_id}, ${from_block}, ${to_block}, ${reason}, ${gap.create_time},
          ${isOpen ? null : now}, ${gap.attempts}, ${gap.next_time}, ${gap.reopen_time})
        on conflict (network_id, from_block) do update set to_block = excluded.to_block,
          reason = excluded.reason, create_time = excluded.create_time,
          close_time = excluded.close_time, attempts = excluded.attempts,
          next_time = excluded.next_time, reopen_time = excluded.reopen_time`.execute(trx)
  }
  return closed
}

type Piece = GapRange & { isOpen: boolean }

/** What a gap consists of once some of its blocks are known. */
function split(
  gap: GapRange,
  { from, to, lacking }: { from: number; to: number; lacking: ReadonlyMap<number, string> },
): Piece[] {
  const pieces: Piece[] = []
  const first = Math.max(from, gap.from_block)
  const last = Math.min(to, gap.to_block)
  const add = (from_block: number, to_block: number, reason: string, isOpen: boolean): void => {
    if (to_block < from_block) return
    const before = pieces.at(-1)
    if (before?.reason === reason && before.isOpen === isOpen) before.to_block = to_block
    else pieces.push({ from_block, to_block, reason, isOpen })
  }
  add(gap.from_block, first - 1, gap.reason, true)
  let next = first
  for (const [number, reason] of [...lacking].sort(([a], [b]) => a - b)) {
    if (number < first || number > last) continue
    add(next, number - 1, gap.reason, false)
    add(number, number, reason, true)
    next = number + 1
  }
  add(next, last, gap.reason, false)
  add(last + 1, gap.to_block, gap.reason, true)
  return pieces
}

/**
 * Whether some gap has made balances doubtful, and no walk that reads them again has begun since. One that is filled counts,
 * too: what is stored of its blocks then are transfers, not balances.
 */
export const hasUnreopened = async (db: Db, network_id: number): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from tracker_gap
    where network_id = ${network_id} and reopen_time is null limit 1`.execute(db)
  return rows.length > 0
}

/**
 * Whether that is to be done for one of them now. An open gap that was found lately and has the last block may become longer:
 * at its end balances are read again anyway.
 */
export const isReopenDue = async (db: Db, network_id: number, since: Date): Promise<boolean> => {
  const { rows } = await sql`
    select 1 from tracker_gap g
    where network_id = ${network_id} and reopen_time is null and not (close_time is null
      and create_time > ${since} and exists (
        select from tracker_cursor c where c.network_id = g.network_id and c.name = 'tracker'
          and c.block_number <= g.to_block))
    limit 1`.execute(db)
  return rows.length > 0
}

/** Notes that a walk which begins reads balances again because of all gaps up to a block. */
export const setReopened = async (
  trx: Db,
  { network_id, block_number, now }: { network_id: number; block_number: number; now: Date },
): Promise<void> => {
  await sql`
    update tracker_gap set reopen_time = ${now}
    where network_id = ${network_id} and reopen_time is null and to_block <= ${block_number}`.execute(
    trx,
  )
}

/**
 * Keeps the operational event of a network's gaps true: one for all of them, because any account that can
 * make a block unreadable could make any number of gaps. To be called where gaps have changed.
 */
export const syncGapEvent = async (trx: Db, network_id: number, now: Date): Promise<void> => {
  const { rows } = await sql<{
    chain: string
    network: string
    gaps: number
    blocks: number
    first: number
    last: number
    reason: string
  }>`
    select n.chain, n.network, g.* from network n, (
      select count(*)::int8 as gaps, coalesce(sum(to_block - from_block + 1), 0)::int8 as blocks,
        coalesce(min(from_block), 0) as first, coalesce(max(to_block), 0) as last,
        coalesce((array_agg(reason order by to_block desc))[1], '') as reason
      from tracker_gap where network_id = ${network_id} and close_time is null) g
    where n.network_id = ${network_id}`.execute(trx)
  const [found] = rows
  if (!found) return
  const { chain, network, gaps, blocks, first, last, reason } = found
  const name = { kind: 'gap' as const, chain, network, now }
  if (gaps === 0) await resolveEvent(trx, name)
  else
    await openEvent(trx, {
      ...name,
      detail: `${gaps} gaps with ${blocks} blocks between ${first} and ${last}: ${reason}`,
    })
}

/** How many open gaps each network has. */
export const listOpenGapCounts = async (db: Db): Promise<Map<number, number>> => {
  const { rows } = await sql<{ network_id: number; count: number }>`
    select network_id, count(*) as count from tracker_gap
    where close_time is null group by network_id`.execute(db)
  return new Map(rows.map(({ network_id, count }) => [network_id, count]))
}
