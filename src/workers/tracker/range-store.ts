import type { ChainBlock } from '../../chains/chain.ts'
import { findTraced } from '../../storage/tracking/networks.ts'
import type { BlockRange } from '../../storage/tracking/rereads.ts'
import { createMonths } from '../janitor/months.ts'
import { type HistoryHooks, type HistoryTools, linkWindow, storeHistory } from './history.ts'

// Old blocks are never urgent: the tracker at the head uses the same nodes.
const fetchesAtOnce = 4

/** What a caller does with each run of blocks, in the transaction that stores it. */
type RangeHooks = (run: BlockRange) => HistoryHooks

/**
 * Makes the function that fetches some blocks behind the cursor and stores those that a node has. Throws
 * only when there is none.
 */
export function createRangeStore(
  tools: HistoryTools,
): (
  range: BlockRange,
  signal: AbortSignal,
  hooksOf?: RangeHooks,
) => Promise<{ filled: number; closed: number; transfers: number }> {
  const { db, network_id, chain } = tools
  const ensureMonths = createMonths(db)

  const fetch = async (numbers: readonly number[], signal: AbortSignal) => {
    const isTraced = await findTraced(db, network_id)
    const blocks: ChainBlock[] = []
    let failure: unknown
    // A failure ends the loop after its group, so a node that is down costs at most `fetchesAtOnce`
    // requests per attempt.
    for (let at = 0; at < numbers.length && failure === undefined; at += fetchesAtOnce) {
      const some = numbers.slice(at, at + fetchesAtOnce)
      const fetched = await Promise.allSettled(
        some.map((number) => chain.block(number, { isTraced }, signal)),
      )
      signal.throwIfAborted()
      for (const one of fetched)
        if (one.status === 'fulfilled') blocks.push(one.value)
        else failure ??= one.reason
    }
    if (blocks.length === 0) throw failure
    return blocks
  }

  return async ({ from, to }, signal, hooksOf = () => ({})) => {
    const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at)
    const blocks = await fetch(numbers, signal)
    // A later reorganization must find these blocks, or their transfers would stay.
    if (chain.reorganizes) await linkWindow(tools, { from, to }, signal)
    await ensureMonths(blocks.map(({ time }) => time))
    const sum = { filled: 0, closed: 0, transfers: 0 }
    // Those that follow each other are stored together.
    for (const run of runsOf(blocks)) {
      const hooks = hooksOf({ from: run[0]!.number, to: run.at(-1)!.number })
      const { closed, transfers, whole } = await storeHistory(tools, run, signal, hooks)
      sum.closed += closed
      sum.transfers += transfers
      sum.filled += whole
    }
    return sum
  }
}

function runsOf(blocks: readonly ChainBlock[]): ChainBlock[][] {
  const runs: ChainBlock[][] = []
  for (const block of blocks) {
    const run = runs.at(-1)
    if (run?.at(-1)?.number === block.number - 1) run.push(block)
    else runs.push([block])
  }
  return runs
}
