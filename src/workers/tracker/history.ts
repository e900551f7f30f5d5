import type { Chain, ChainBlock } from '../../chains/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import { insertBalanceChanges, openNewBalances } from '../../storage/balances/changes.ts'
import type { BulkRow } from '../../storage/pg/bulk.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  awaitCursor,
  type BlockRow,
  findBlockAbove,
  findBlocks,
  findCursor,
  findHighestMissing,
  findLowestBlock,
  insertBlocks,
} from '../../storage/tracking/blocks.ts'
import { coverGaps, isInGap, syncGapEvent } from '../../storage/tracking/gaps.ts'
import { insertMissingTransfers, updateTransfers } from '../../storage/transfers/transfers.ts'
import { ensureAssets } from '../../storage/wallets/assets.ts'
import type { FanOutLimits } from '../../storage/webhooks/fan-out-limits.ts'
import { type AssertChecked, storeChecked } from './checked.ts'
import { lacksOf } from './lacking.ts'
import { addTokenRules, lookUp, matchBlock } from './match.ts'
import { noteBackfilled, noteUpdates } from './notifications.ts'
import { reorganizationWindow } from './reorg.ts'

/** The chain was reorganized beneath some blocks of history: they are fetched again. */
export class HistoryMovedError extends Error {
  override name = 'HistoryMovedError'
}

/** What storing history needs. */
export type HistoryTools = {
  db: Db
  clock: Clock
  network_id: number
  chain: Chain
  fanOutLimits?: FanOutLimits
}

/** What storing some blocks of history came to. */
export type StoredHistory = {
  transfers: number
  closed: number
  /** Blocks of which everything is known now. */
  whole: number
}

/** What a caller does in the same transaction. */
export type HistoryHooks = {
  /** Before the look-up of who is tracked. */
  begin?(trx: Db): Promise<void>
  /** Which of the transfers are stored; all of them without it. */
  choose?(trx: Db, transfers: BulkRow<'transfer'>[]): Promise<BulkRow<'transfer'>[]>
  /** At the end. */
  note?(trx: Db): Promise<void>
}

/**
 * Stores blocks that the tracker has gone past: the transfers that are missing, notifications of those,
 * and the gaps that are closed by it. Safe beside the tracker and to be done again: records have the
 * same keys, and blocks that can still leave the chain must be the tracker's. The notifications wait
 * as all others do; the tracker releases them with its next block, so that their numbers are in order.
 */
export const storeHistory = (
  tools: HistoryTools,
  blocks: readonly ChainBlock[],
  signal: AbortSignal,
  hooks: HistoryHooks = {},
): Promise<StoredHistory> =>
  storeChecked((assertChecked) => storeOnce(tools, blocks, { ...hooks, assertChecked }), signal)

async function storeOnce(
  { db, clock, network_id, chain, fanOutLimits: limits }: HistoryTools,
  blocks: readonly ChainBlock[],
  { begin, choose, note, assertChecked }: HistoryHooks & { assertChecked: AssertChecked },
): Promise<StoredHistory> {
  const first = blocks[0]!
  const last = blocks.at(-1)!
  return await db.transaction().execute(async (trx) => {
    // A share lock on the cursor: no reorganization and no removal of an address runs meanwhile, so
    // both find what is stored here.
    const cursor = await awaitCursor(trx, network_id)
    if (!cursor || cursor.block_number < last.number)
      throw new HistoryMovedError('the tracker went back')
    if (chain.reorganizes)
      await assertStored(trx, { network_id, head: cursor.block_number }, blocks)
    await begin?.(trx)
    const now = new Date(clock.now())
    const { tracked, matches: known } = await lookUp(trx, { network_id, chain }, blocks)
    assertChecked(blocks, tracked)
    const contents = blocks.map((block) => ({ block, content: block.decode(tracked) }))
    const matches = await addTokenRules(trx, chain, known, contents)
    const rows = contents.map(({ block, content }) => matchBlock(block, content, matches))
    const assets = new Map(rows.flatMap((row) => [...row.assets]))
    await ensureAssets(trx, network_id, [...assets.values()], now)
    // `choose` limits them to tokens that were tracked late; a refill stores all.
    const all = rows.flatMap((row) => row.transfers)
    const found = choose ? await choose(trx, all) : all
    const added = await insertMissingTransfers(trx, found)
    const changes = rows.flatMap((row) => row.changes)
    const range = { from: first.number, to: last.number }
    // Every balance is read again after a gap, which waits for wallets with more confirmations. Those that a block of it
    // changed are read as after any other block.
    if (chain.balances === 'read' && !choose && (await isInGap(trx, network_id, range)))
      await insertBalanceChanges(trx, changes)
    // Those that were first touched here do not exist yet. A fee touches the balance of the coin without a transfer of it.
    const touched = choose ? added : [...added, ...changes]
    const head = cursor.block_number
    // Once more at the head: an address that was registered lately was not matched with the blocks in between. Nodes of
    // chains with net changes answer for the present only, from which unknown changes cannot be taken off.
    const atHead = touched.map((one) => ({ ...one, block_number: head }))
    const opened = chain.balances === 'delta' ? atHead : [...touched, ...atHead]
    await openNewBalances(trx, opened, { network_id, head })
    const context = { network_id, service: chain.service, now, limits }
    await noteBackfilled(trx, context, blocks, added)
    for (const { block, content } of contents) {
      const updated = await updateTransfers(trx, network_id, content.updates ?? [])
      await noteUpdates(trx, context, block, updated)
    }
    const lacking = new Map(
      contents.flatMap(({ block, content }) => {
        const lacks = lacksOf(block, content)
        return lacks === undefined ? [] : [[block.number, lacks] as const]
      }),
    )
    const covered = { network_id, ...range, lacking, now }
    // Where only some transfers are stored, the others of a gap are still missing.
    const closed = choose ? 0 : await coverGaps(trx, covered)
    if (closed > 0) await syncGapEvent(trx, network_id, now)
    await note?.(trx)
    return { transfers: added.length, closed, whole: blocks.length - lacking.size }
  })
}

/** A block that can still leave the chain must be one that the tracker would take back. */
async function assertStored(
  trx: Db,
  { network_id, head }: { network_id: number; head: number },
  blocks: readonly ChainBlock[],
): Promise<void> {
  const numbers = blocks.map(({ number }) => number)
  const stored = new Map(
    (await findBlocks(trx, network_id, numbers)).map((row) => [row.block_number, row.block_hash]),
  )
  // Below it nothing is taken back any more, and rows of blocks are not kept.
  const first = await findWindowStart(trx, network_id, head)
  for (const { number, hash } of blocks)
    if (number >= first && stored.get(number)?.equals(hash) !== true)
      throw new HistoryMovedError(`block ${number} is not the tracker's`)
}

// History shares the nodes with the tracker at the head, so few requests run at once and each step
// is short.
const headersAtOnce = 8
const headersPerStep = 128

/**
 * Lets the tracker know those blocks from `from` on that can still leave the chain and that it has not
 * stored, each the parent of the one above: it would not take back what is added to them otherwise.
 * They are stored in steps from the top down, so that what was interrupted continues.
 */
export async function linkWindow(
  { db, network_id, chain }: HistoryTools,
  { from, to }: { from: number; to: number },
  signal: AbortSignal,
): Promise<void> {
  // Each round stores one step and looks again, because the tracker may have moved or rolled back
  // between two steps.
  for (;;) {
    const cursor = await findCursor(db, network_id)
    if (!cursor) throw new HistoryMovedError('no block is stored')
    const first = Math.max(from, await findWindowStart(db, network_id, cursor.block_number), 1)
    const missing = await findHighestMissing(db, network_id, { from: first, to })
    if (missing === undefined) return
    const above = await findBlockAbove(db, network_id, missing)
    // The chain of parents begins at a block that the tracker has stored, so that a lying node cannot insert
    // another branch.
    const wanted = above ? above.parent_hash : cursor.block_hash
    const top = above ? above.block_number - 1 : cursor.block_number
    const numbers: number[] = []
    for (let number = top; number >= first && numbers.length < headersPerStep; number--)
      numbers.push(number)
    const rows = await readLinked(chain, { network_id, numbers, wanted }, signal)
    await db.transaction().execute(async (trx) => {
      // Compare again under the lock: headers were read without one.
      const still = await awaitCursor(trx, network_id)
      const [anchor] = above ? await findBlocks(trx, network_id, [above.block_number]) : []
      const isSame = above
        ? anchor?.block_hash.equals(above.block_hash)
        : still?.block_hash.equals(cursor.block_hash)
      if (!isSame) throw new HistoryMovedError('the tracker took its blocks back')
      await insertBlocks(trx, rows)
    })
  }
}

/** The first block that can still leave the chain. */
const findWindowStart = async (db: Db, network_id: number, head: number): Promise<number> =>
  Math.min(head - reorganizationWindow + 1, (await findLowestBlock(db, network_id)) ?? head)

/** Headers from the top down, each the parent of the one before. */
async function readLinked(
  chain: Chain,
  {
    network_id,
    numbers,
    wanted,
  }: { network_id: number; numbers: readonly number[]; wanted: Buffer },
  signal: AbortSignal,
): Promise<BlockRow[]> {
  const rows: BlockRow[] = []
  // Each header must be the parent of the one before. A node that answers from another branch fails
  // here.
  let expected = wanted
  for (let at = 0; at < numbers.length; at += headersAtOnce) {
    const some = numbers.slice(at, at + headersAtOnce)
    const headers = await Promise.all(some.map((number) => chain.header(number, signal)))
    for (const [index, header] of headers.entries()) {
      if (!header?.hash.equals(expected))
        throw new HistoryMovedError(`block ${some[index]} is not the one that the tracker knows`)
      const { number: block_number, hash: block_hash, parent_hash, time } = header
      rows.push({ network_id, block_number, block_hash, parent_hash, block_time: new Date(time) })
      expected = parent_hash
    }
  }
  return rows
}
