import { BlockForgedError, type Chain, type ChainBlock, type Position } from '../chains/chain.ts'
import type { Clock } from '../lib/clock.ts'
import { ensureAssets } from '../storage/assets.ts'
import { findBackfill, finishBackfill, setBackfill } from '../storage/backfill.ts'
import {
  awaitCursor,
  type BlockRow,
  findBlocks,
  findCursor,
  insertBlocks,
  listBlocksBelow,
} from '../storage/blocks.ts'
import { pinIdentity } from '../storage/chains.ts'
import type { Db } from '../storage/database.ts'
import { insertTransfers } from '../storage/transfers.ts'
import { type AssertChecked, storeChecked } from './checked.ts'
import { createMonths } from './months.ts'
import { reorganizationWindow } from './reorg.ts'
import { ForeignChainError } from './tracker.ts'
import { lookUp } from './tracker-lookup.ts'
import { matchBlock } from './tracker-match.ts'

/** What is to be indexed. */
export type BackfillOptions = {
  db: Db
  clock: Clock
  chain_id: number
  chain: Chain
  from: number
  /** The last block that the tracker has stored, unless given. */
  to?: number
  signal: AbortSignal
  onProgress?(progress: BackfillProgress): void
}

/** How far it is. */
export type BackfillProgress = {
  from: number
  to: number
  block_number: number
  transfers: number
}

/** What it came to. */
export type BackfillOutcome = {
  from: number
  to: number
  transfers: number
  /** Gaps of the tracker that are closed now. */
  closed: number
  /** Blocks that no node has, or not whole any more. */
  missing: { from: number; to: number; reason: string }[]
}

/** It cannot be done as asked for; the message says why. */
export class BackfillError extends Error {
  override name = 'BackfillError'
}

/** The chain was reorganized beneath a batch: it is fetched again. */
class HistoryMovedError extends Error {
  override name = 'HistoryMovedError'
}

const pauseMs = 500

/**
 * Indexes history for the addresses that are registered now. Only transfers are added: balances are
 * read from the present, and nobody is told of the past. Safe beside the tracker and to be done
 * again: records have the same keys, and blocks that can still leave the chain must be the tracker's.
 */
export async function runBackfill(options: BackfillOptions): Promise<BackfillOutcome> {
  const { db, clock, chain_id, chain, signal, onProgress = () => {} } = options
  const { from, to } = await chooseRange(options)
  const range = { chain_id, from, to }
  const ensureMonths = createMonths(db)
  const missing: BackfillOutcome['missing'] = []
  let done = (await findBackfill(db, range)) ?? from - 1
  let transfers = 0

  const store = async (blocks: readonly ChainBlock[]): Promise<void> => {
    await ensureMonths(blocks.map(({ time }) => time))
    transfers += await storeHistory(options, range, blocks)
    done = blocks.at(-1)!.number
    onProgress({ from, to, block_number: done, transfers })
  }

  /** Goes on after a position until the end or until the chain moves. */
  const goOn = async (position: Position): Promise<void> => {
    for await (const event of chain.follow(position, signal)) {
      if (event.kind === 'fork') throw new HistoryMovedError('the chain left the position')
      if (event.kind === 'gap') {
        const { from, reason } = event
        missing.push({ from, to: Math.min(event.to.number, to), reason })
        done = event.to.number
      } else {
        const wanted = event.blocks.filter(({ number }) => number <= to)
        if (wanted.length > 0) await store(wanted)
        for (const block of wanted) noteLack(missing, block)
      }
      if (done >= to) return
    }
  }

  while (done < to) {
    signal.throwIfAborted()
    const position = await chain.header(done, signal)
    if (!position) throw new BackfillError(`No node has block ${done}.`)
    try {
      if (chain.reorganizes) await extendWindow(options)
      await goOn(position)
    } catch (error) {
      if (!(error instanceof HistoryMovedError) && !(error instanceof BlockForgedError)) throw error
      await clock.sleep(pauseMs, signal)
      done = Math.max(from - 1, done - reorganizationWindow)
    }
  }
  const now = new Date(clock.now())
  const closed = await finishBackfill(db, range, { now, closes: missing.length === 0 })
  return { from, to, transfers, closed, missing }
}

function noteLack(missing: BackfillOutcome['missing'], { number, lacks }: ChainBlock): void {
  if (lacks === undefined) return
  const last = missing.at(-1)
  if (last?.to === number - 1 && last.reason === lacks) last.to = number
  else missing.push({ from: number, to: number, reason: lacks })
}

async function chooseRange(options: BackfillOptions): Promise<{ from: number; to: number }> {
  const { db, chain_id, chain, signal } = options
  // The positions of T hold more than a block's number; its history is not read backwards.
  if (chain.tokenAccounts) throw new BackfillError('History of this chain cannot be indexed.')
  const cursor = await findCursor(db, chain_id)
  if (!cursor)
    throw new BackfillError('The chain was never tracked yet. Start the service with it first.')
  const identity = await chain.identity(signal)
  const pinned = await pinIdentity(db, chain_id, identity)
  if (pinned !== identity)
    throw new ForeignChainError(`the nodes are of ${identity}, the rows of ${pinned}`)
  // The first block of all has no transactions, and nothing before it to begin at.
  const from = Math.max(options.from, 1)
  const to = Math.min(options.to ?? cursor.block_number, cursor.block_number)
  if (from > to)
    throw new BackfillError(
      `There is nothing between ${options.from} and ${options.to ?? to}: the tracker is at block ${cursor.block_number}.`,
    )
  return { from, to }
}

/** A block that can still leave the chain must be one that the tracker would take back. */
async function assertStored(
  trx: Db,
  { chain_id, head }: { chain_id: number; head: number },
  blocks: readonly ChainBlock[],
): Promise<void> {
  const numbers = blocks.map(({ number }) => number)
  const stored = new Map(
    (await findBlocks(trx, chain_id, numbers)).map((row) => [row.block_number, row.block_hash]),
  )
  for (const { number, hash } of blocks)
    if (number > head - reorganizationWindow && stored.get(number)?.equals(hash) !== true)
      throw new HistoryMovedError(`block ${number} is not the tracker's`)
}

const storeHistory = (
  options: BackfillOptions,
  range: { chain_id: number; from: number; to: number },
  blocks: readonly ChainBlock[],
): Promise<number> =>
  storeChecked(
    (assertChecked) => storeHistoryOnce(options, range, blocks, assertChecked),
    options.signal,
  )

async function storeHistoryOnce(
  { db, clock, chain_id, chain }: BackfillOptions,
  range: { chain_id: number; from: number; to: number },
  blocks: readonly ChainBlock[],
  assertChecked: AssertChecked,
): Promise<number> {
  const last = blocks.at(-1)!
  return await db.transaction().execute(async (trx) => {
    // No reorganization and no removal meanwhile: what is stored here is what they find afterwards.
    const cursor = await awaitCursor(trx, chain_id)
    if (!cursor || cursor.block_number < last.number)
      throw new HistoryMovedError('the tracker went back')
    if (chain.reorganizes) await assertStored(trx, { chain_id, head: cursor.block_number }, blocks)
    const now = new Date(clock.now())
    const { tracked, matches } = await lookUp(trx, { chain_id, chain }, blocks)
    assertChecked(blocks, tracked)
    const rows = blocks.map((block) => matchBlock(block, block.decode(tracked), matches))
    const assets = new Map(rows.flatMap((row) => [...row.assets]))
    await ensureAssets(trx, chain_id, [...assets.values()], now)
    const inserted = await insertTransfers(
      trx,
      rows.flatMap((row) => row.transfers),
    )
    const { number: block_number, hash: block_hash } = last
    await setBackfill(trx, range, { block_number, block_hash, update_time: now })
    return inserted
  })
}

/**
 * Lets the tracker know the blocks before its first one that can still leave the chain, each the
 * parent of the one above: soon after its first start it would not take back what is added to them.
 */
async function extendWindow({ db, chain_id, chain, signal }: BackfillOptions): Promise<void> {
  const cursor = await findCursor(db, chain_id)
  const head = cursor!.block_number
  const [lowest] = (await listBlocksBelow(db, chain_id, head + 1, reorganizationWindow + 1)).slice(
    -1,
  )
  if (!lowest) throw new HistoryMovedError('no block is stored')
  const rows: BlockRow[] = []
  let child = lowest
  while (child.block_number > Math.max(head - reorganizationWindow, 0)) {
    const parent = await chain.header(child.block_number - 1, signal)
    if (!parent?.hash.equals(child.parent_hash))
      throw new HistoryMovedError(`block ${child.block_number} has no parent on the chain`)
    const { number: block_number, hash: block_hash, parent_hash, time } = parent
    child = { chain_id, block_number, block_hash, parent_hash, block_time: new Date(time) }
    rows.push(child)
  }
  if (rows.length === 0) return
  await db.transaction().execute(async (trx) => {
    await awaitCursor(trx, chain_id)
    const [still] = await findBlocks(trx, chain_id, [lowest.block_number])
    if (!still?.block_hash.equals(lowest.block_hash))
      throw new HistoryMovedError('the tracker took its first block back')
    await insertBlocks(trx, rows)
  })
}
