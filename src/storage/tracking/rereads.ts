import { sql } from 'kysely'
import { hashId } from '../../lib/hash-id.ts'
import type { Db } from '../pg/database.ts'

// Blocks that are read again for token accounts that were found late (T). One job row for each network
// holds their ranges, so that late accounts of many organizations cost one read of each block.

/** Consecutive blocks, both ends included. */
export type BlockRange = { from: number; to: number }

/** The kind of the row. No runner claims it: the tracker reads it itself. */
const rereadKind = 'reread_blocks'

// Ranges end near the cursor and mostly overlap. Beyond this number the two nearest become one.
const mostRanges = 64

const idOf = (network_id: number): string => hashId('reread', network_id)

/** Adds blocks to those that are read again. Takes the row's lock until the transaction ends. */
export const addReread = async (
  trx: Db,
  { network_id, now, ...range }: BlockRange & { network_id: number; now: Date },
): Promise<void> => {
  const { rows } = await sql<{ payload: { ranges: BlockRange[] } }>`
    insert into job (job_id, kind, network_id, payload, attempt_count, next_attempt_time, create_time,
      update_time)
    values (${idOf(network_id)}, ${rereadKind}, ${network_id}, '{"ranges":[]}', 0, 'infinity', ${now}, ${now})
    on conflict (job_id) do update set update_time = excluded.update_time
    returning payload`.execute(trx)
  await setRanges(trx, network_id, mergeRanges([...rows[0]!.payload.ranges, range]))
}

/** The blocks that wait to be read again, the lowest first. */
export const listRereads = async (db: Db, network_id: number): Promise<BlockRange[]> =>
  await readRanges(db, network_id, sql``)

/**
 * Locks the row. Accounts that are added later add their blocks afterwards, and those added before are
 * visible to the statements that follow.
 */
export const holdRereads = async (trx: Db, network_id: number): Promise<void> => {
  await readRanges(trx, network_id, sql`for update`)
}

/** Takes blocks out that were read again. */
export const finishReread = async (
  trx: Db,
  { network_id, from, to }: BlockRange & { network_id: number },
): Promise<void> => {
  const ranges = await readRanges(trx, network_id, sql`for update`)
  const left = ranges.flatMap((range) => [
    ...(range.from < from ? [{ from: range.from, to: Math.min(range.to, from - 1) }] : []),
    ...(range.to > to ? [{ from: Math.max(range.from, to + 1), to: range.to }] : []),
  ])
  if (left.length > 0) await setRanges(trx, network_id, left)
  else await sql`delete from job where job_id = ${idOf(network_id)}`.execute(trx)
}

const readRanges = async (
  db: Db,
  network_id: number,
  lock: ReturnType<typeof sql>,
): Promise<BlockRange[]> => {
  const { rows } = await sql<{ payload: { ranges: BlockRange[] } }>`
    select payload from job where job_id = ${idOf(network_id)} ${lock}`.execute(db)
  return rows[0]?.payload.ranges ?? []
}

const setRanges = async (trx: Db, network_id: number, ranges: BlockRange[]): Promise<void> => {
  await sql`
    update job set payload = ${JSON.stringify({ ranges })}::jsonb
    where job_id = ${idOf(network_id)}`.execute(trx)
}

/** Joins ranges that overlap or touch, in order; at most `mostRanges` remain. */
export function mergeRanges(ranges: readonly BlockRange[], most = mostRanges): BlockRange[] {
  const merged: BlockRange[] = []
  for (const { from, to } of ranges.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1)
    if (last && from <= last.to + 1) last.to = Math.max(last.to, to)
    else merged.push({ from, to })
  }
  while (merged.length > most) {
    let nearest = 1
    for (let at = 2; at < merged.length; at++)
      if (gapBefore(merged, at) < gapBefore(merged, nearest)) nearest = at
    merged[nearest - 1]!.to = merged[nearest]!.to
    merged.splice(nearest, 1)
  }
  return merged
}

const gapBefore = (ranges: readonly BlockRange[], at: number): number =>
  ranges[at]!.from - ranges[at - 1]!.to
