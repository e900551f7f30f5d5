import {
  BlockForgedError,
  BlockMissingError,
  type Chain,
  type ChainBlock,
  type Position,
} from '../../chains/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  findBackfill,
  findCursor,
  finishBackfill,
  setBackfill,
} from '../../storage/tracking/blocks.ts'
import { findTraced } from '../../storage/tracking/networks.ts'
import { createMonths } from '../janitor/months.ts'
import { requireIdentity } from './beginning.ts'
import { HistoryMovedError, linkWindow, storeHistory } from './history.ts'
import { reorganizationWindow } from './reorg.ts'

/** What is to be indexed. */
export type BackfillOptions = {
  db: Db
  clock: Clock
  network_id: number
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

// How often one run asks again for blocks that no node has, all blocks together.
const mostAbsences = 5
// Before a range is tried again after a reorganization, in which nodes need a moment to agree.
const pauseMs = 500

/**
 * Indexes history for the addresses that are registered now. What is new is notified as backfilled;
 * balances are read from the present. Gaps are closed as far as they are filled.
 */
export async function runBackfill(options: BackfillOptions): Promise<BackfillOutcome> {
  const { db, clock, network_id, chain, signal, onProgress = () => {} } = options
  const { from, to } = await chooseRange(options)
  const range = { network_id, from, to }
  const ensureMonths = createMonths(db)
  const missing: BackfillOutcome['missing'] = []
  // A stored position of the same range: an interrupted command continues where it was.
  let done = (await findBackfill(db, range)) ?? from - 1
  let transfers = 0
  let closed = 0
  let absences = 0
  // Old blocks are traced as the tracker does it, or their internal transfers would be missing.
  const isTraced = await findTraced(db, network_id)

  const store = async (blocks: readonly ChainBlock[]): Promise<void> => {
    await ensureMonths(blocks.map(({ time }) => time))
    const last = blocks.at(-1)!
    const { number: block_number, hash: block_hash } = last
    const update_time = new Date(clock.now())
    const stored = await storeHistory(options, blocks, signal, {
      note: (trx) => setBackfill(trx, range, { block_number, block_hash, update_time }),
    })
    transfers += stored.transfers
    closed += stored.closed
    done = last.number
    onProgress({ from, to, block_number: done, transfers })
  }

  /** Continues after a position until the end or until the chain moves. */
  const resume = async (position: Position): Promise<void> => {
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
      if (chain.reorganizes) await linkWindow(options, { from: done + 1, to }, signal)
      await resume({ ...position, isTraced })
    } catch (error) {
      if (error instanceof BlockMissingError) {
        // A command has just connected to its nodes: the one that has the block may not have answered yet.
        if (++absences > mostAbsences) throw new BackfillError(`${error.message}.`)
        await clock.sleep(absences * pauseMs, signal)
        continue
      }
      if (!(error instanceof HistoryMovedError) && !(error instanceof BlockForgedError)) throw error
      await clock.sleep(pauseMs, signal)
      // Blocks that were stored from the branch that left are read again; storing a block twice changes
      // nothing.
      done = Math.max(from - 1, done - reorganizationWindow)
    }
  }
  await finishBackfill(db, range)
  return { from, to, transfers, closed, missing }
}

function noteLack(missing: BackfillOutcome['missing'], { number, lacks }: ChainBlock): void {
  if (lacks === undefined) return
  const last = missing.at(-1)
  if (last?.to === number - 1 && last.reason === lacks) last.to = number
  else missing.push({ from: number, to: number, reason: lacks })
}

async function chooseRange(options: BackfillOptions): Promise<{ from: number; to: number }> {
  const { db, network_id, signal } = options
  const cursor = await findCursor(db, network_id)
  if (!cursor)
    throw new BackfillError('The chain was never tracked yet. Start the service with it first.')
  await requireIdentity(options, signal)
  // The first block of all has no transactions, and nothing before it to begin at.
  const from = Math.max(options.from, 1)
  const to = Math.min(options.to ?? cursor.block_number, cursor.block_number)
  if (from > to)
    throw new BackfillError(
      `There is nothing between ${options.from} and ${options.to ?? to}: the tracker is at block ${cursor.block_number}.`,
    )
  return { from, to }
}
