import { sql } from 'kysely'
import type { BlockHeader, Chain } from '../../chains/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../storage/pg/database.ts'
import { findBlocks, findCursor, lockCursor } from '../../storage/tracking/blocks.ts'
import { requireIdentity } from './beginning.ts'
import { takeBack } from './reorg.ts'

/** What is to be taken back: everything above a block. */
export type RewindOptions = {
  db: Db
  clock: Clock
  network_id: number
  chain: Chain
  to: number
  signal: AbortSignal
}

/** What a rewind takes back. */
export type RewindPlan = {
  /** The last block that is stored. */
  cursor: { number: number; hash: Buffer }
  /** The block to which the tracker goes back, as the nodes have it. */
  to: BlockHeader
  transfers: number
  organizations: number
  /** Notifications that were released: each transaction is notified as reorganized. */
  notified: number
  /** Notifications that are not released yet and never will be. */
  waiting: number
}

/** It cannot be done as asked for; the message says why. */
export class RewindError extends Error {
  override name = 'RewindError'
}

/** Says what a rewind would take back; changes nothing. */
export async function planRewind(options: RewindOptions): Promise<RewindPlan> {
  const { db, network_id, chain, signal } = options
  const cursor = await findCursor(db, network_id)
  if (!cursor)
    throw new RewindError('The chain was never tracked yet: there is nothing to take back.')
  await requireIdentity(options, signal)
  if (options.to >= cursor.block_number)
    throw new RewindError(
      `Block ${options.to} is not before the last block that is stored, ${cursor.block_number}.`,
    )
  const to = await chain.header(options.to, signal)
  if (!to) throw new RewindError(`No node has block ${options.to}.`)
  const [stored] = await findBlocks(db, network_id, [to.number])
  // Above the common ancestor: rows of the other branch would stay below the cursor.
  if (stored && !stored.block_hash.equals(to.hash))
    throw new RewindError(
      `Block ${to.number} that is stored is not the one on the chain: choose a lower one.`,
    )
  // Counted for the question that the command asks before it acts; the rewind does not depend on
  // the figures.
  const { rows } = await sql<Omit<RewindPlan, 'cursor' | 'to'>>`
    select t.*, d.* from (
      select count(*)::int8 as transfers, count(distinct organization_id)::int8 as organizations
      from transfer where network_id = ${network_id} and block_number > ${options.to}) t, (
      select count(*) filter (where due_block is null)::int8 as notified,
        count(*) filter (where due_block is not null)::int8 as waiting
      from delivery where network_id = ${network_id} and block_number > ${options.to}) d`.execute(
    db,
  )
  return { cursor: { number: cursor.block_number, hash: cursor.block_hash }, to, ...rows[0]! }
}

/**
 * Takes back what was planned, in one transaction. A tracker that runs meanwhile finds its cursor moved
 * and continues from there. Without the tracker's lease, which it holds: the lock of the cursor keeps
 * everything apart, and a cursor that is not where it was planned from changes nothing.
 */
export async function runRewind(options: RewindOptions, plan: RewindPlan): Promise<void> {
  const { db, network_id } = options
  await db.transaction().execute(async (trx) => {
    const cursor = await lockCursor(trx, network_id)
    const isSame =
      cursor?.block_number === plan.cursor.number && cursor.block_hash.equals(plan.cursor.hash)
    // A tracker that still stores blocks is not stuck; it has only gone on since the plan was made.
    const isAhead = cursor !== undefined && cursor.block_number > plan.to.number
    if (!isSame && !isAhead) throw new RewindError('The tracker went back meanwhile. Try again.')
    await takeBack(trx, options, plan.to)
  })
}
