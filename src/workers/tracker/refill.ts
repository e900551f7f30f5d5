import type { Log } from '../../lib/log.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import { findDueGap, type GapRow, postponeGap } from '../../storage/tracking/gaps.ts'
import { createRangeStore } from './range-store.ts'
import { reopenLate } from './reopening.ts'
import { createReread } from './reread.ts'
import type { TrackerTools } from './tools.ts'

/** When gaps are asked for again, and how much of one at a time. */
export type RefillTimes = {
  /** How often to look for a gap that is due. */
  everyMs: number
  /** The pause after an attempt that brought nothing; it doubles with each. */
  firstPauseMs: number
  lastPauseMs: number
  /** Blocks of one attempt; after it other gaps have their turn. */
  blocks: number
}

const usualTimes: RefillTimes = {
  // A gap is an exception: looking for one must cost next to nothing.
  everyMs: 5_000,
  firstPauseMs: 30_000,
  lastPauseMs: 3_600_000,
  blocks: 16,
}

// Between two attempts that bring something: the head comes first.
const breathMs = 100

/** Fills gaps beside the tracker, by any node that has their blocks, for as long as there are some. */
export function startRefilling(options: {
  tools: TrackerTools
  log: Log
  signal: AbortSignal
  counts: { filled: number; failed: number }
  times?: Partial<RefillTimes> | undefined
  /** Some blocks were stored: there may be notifications to release. */
  onStored?(): void
}): { stop(): Promise<void> } {
  const { tools, log, counts, onStored = () => {} } = options
  const { db, clock, network_id, chain } = tools
  const times = { ...usualTimes, ...options.times }
  const stopping = new AbortController()
  const signal = AbortSignal.any([options.signal, stopping.signal])
  const refill = createRefill(tools, times.blocks)
  const reread = createReread(tools, { ...times, log })

  const rereadSome = async (): Promise<boolean> => {
    const isDone = await reread(signal)
    if (isDone) onStored()
    return isDone
  }

  /** Asks for a part of the gap that is due first, if there is one. */
  const refillSome = async (): Promise<boolean> => {
    const gap = await findDueGap(db, network_id, new Date(clock.now()))
    if (!gap) return false
    const { from_block: from, to_block: to } = gap
    const about = { chain: chain.service, network_id, from, to }
    try {
      const { filled, closed } = await refill(gap, signal)
      counts.filled += filled
      onStored()
      if (closed > 0) log.info(about, 'gap filled')
      if (filled > 0) return true
      log.debug({ ...about, attempts: gap.attempts + 1 }, 'gap cannot be filled yet')
    } catch (error) {
      signal.throwIfAborted()
      const reason = error instanceof Error ? error.message : String(error)
      log.debug({ ...about, reason, attempts: gap.attempts + 1 }, 'gap cannot be filled yet')
    }
    // Counted and postponed in the row, so that another process that takes the lease keeps the
    // pause.
    counts.failed++
    const pauseMs = Math.min(
      times.firstPauseMs * 2 ** Math.min(gap.attempts, 20),
      times.lastPauseMs,
    )
    const next_time = new Date(clock.now() + pauseMs)
    await postponeGap(db, gap, { attempts: gap.attempts + 1, next_time })
    return true
  }

  // In turns: there may be blocks to read again for as long as an organization has a job with many pages.
  let steps = [rereadSome, refillSome]

  // One step of the loop; returns the pause before the next one in milliseconds.
  const once = async (): Promise<number> => {
    await reopenLate(tools)
    for (const step of steps)
      if (await step()) {
        steps = steps.toReversed()
        return breathMs
      }
    return times.everyMs
  }

  const loop = async (): Promise<void> => {
    while (!signal.aborted)
      try {
        await clock.sleep(await once(), signal)
      } catch (error) {
        if (signal.aborted) return
        log.warn({ err: error, chain: chain.service }, 'gap refill failed, will retry')
        await clock.sleep(times.everyMs, signal).catch(() => {})
      }
  }
  const running = loop()
  return {
    stop: async () => {
      stopping.abort(new Error('stopping'))
      await running
    },
  }
}

/** Makes the function that asks for some blocks of a gap and stores those that are there now. */
export function createRefill(
  tools: TrackerTools,
  most: number,
): (gap: GapRow, signal: AbortSignal) => Promise<{ filled: number; closed: number }> {
  const { db, network_id } = tools
  const store = createRangeStore(tools)
  return async (gap, signal) => {
    const cursor = await findCursor(db, network_id)
    const to = Math.min(gap.to_block, cursor?.block_number ?? -1)
    // Nodes have the newer blocks of a gap more often: every other attempt begins elsewhere.
    const places = to - gap.from_block + 1
    // A prime far above the usual size of a gap spreads the attempts over all places of it.
    const from = gap.from_block + (gap.attempts % 2 === 0 ? 0 : (gap.attempts * 7_919) % places)
    return await store({ from, to: Math.min(from + most - 1, to) }, signal)
  }
}
