// The order of what subscribers see (spec 6.2): first the removed logs of blocks that have left, oldest first, then each
// new block with its header before its logs. Where a block leaves while its logs are fetched, the rest of the change is
// dropped, and the next change continues from there.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { FeedBlock, FeedLog } from './feed-block.ts'
import type { FeedBlocks } from './feed-source.ts'

/** What the feed sends, in this order for every change of the chain. Each waits for the one before. */
export type FeedSink = {
  /** Blocks that left the chain, oldest first, and those that take their place. */
  removed(blocks: readonly FeedBlock[], added: readonly FeedBlock[]): Promise<void>
  header(block: FeedBlock): Promise<void> | undefined
  logs(block: FeedBlock, logs: readonly FeedLog[]): Promise<void> | undefined
  /** There is a gap in the chain, or in its logs alone: listeners must start over. */
  lost(reason: string, what: 'chain' | 'logs'): void
}

/** Sends the changes of the chain, one at a time. */
export type FeedSender = {
  send(removed: readonly FeedBlock[], added: readonly FeedBlock[]): Promise<void>
  /** The order of the last header that was sent. */
  order(): number
}

/** Blocks whose headers or logs are fetched at the same time while the feed catches up. */
export const blocksAhead = 4
export const firstRetryMs = 25
export const lastRetryMs = 1_000
/** Headers wait for the logs of the block before, but not for ever. */
const maxLogsMs = 30_000

/** Makes the sender. Logs are fetched only while `wantsLogs`, each block before the header of the next. */
export function createFeedSender(options: {
  blocks: FeedBlocks
  canonical: Canonical
  clock: Clock
  log: Log
  sink: FeedSink
  wantsLogs(): boolean
  signal: AbortSignal
}): FeedSender {
  const { blocks, canonical, clock, log, sink, wantsLogs, signal } = options
  let order = 1

  // Failures do not matter here: the sender asks again when the block is next.
  const prefetch = (block: FeedBlock): void => {
    blocks.logs(block, 0).catch(() => undefined)
  }

  /** Asks until the logs are there, no client wants them any more, or their block has left the chain. */
  const logsOf = async (block: FeedBlock) => {
    const deadline = clock.now() + maxLogsMs
    let retryMs = firstRetryMs
    for (let attempt = 0; !signal.aborted; attempt++) {
      const logs = await blocks.logs(block, attempt)
      if (logs) return logs
      if (!wantsLogs()) return undefined
      // Without this check a reorganization would wait for logs that no node has any more.
      if (canonical.pathFrom(block.hash)?.removed.length !== 0) return 'left'
      if (clock.now() >= deadline) {
        log.warn({ number: block.number, hash: block.hash }, 'no node has the logs of a block')
        sink.lost('The logs of a block are not to be had.', 'logs')
        return undefined
      }
      await clock.sleep(retryMs, signal).catch(() => {})
      retryMs = Math.min(retryMs * 2, lastRetryMs)
    }
    return 'left'
  }

  return {
    order: () => order,
    async send(removed, added) {
      // Logs that were sent must be taken back. Where they are not kept any more, listeners start over.
      if (removed.some(({ isLogged, logs }) => isLogged && !logs))
        sink.lost('The logs of dropped blocks are not known any more.', 'chain')
      else if (removed.length > 0) await sink.removed(removed, added)
      // Zero means not sent, so that listeners do not count it as seen.
      for (const block of removed) block.order = 0
      for (const [index, block] of added.entries()) {
        // Each block may take its share of a turn.
        if (index > 0) await nextTurn()
        block.order = ++order
        block.isLogged = false
        await sink.header(block)
        if (!wantsLogs()) continue
        // A few blocks only: while the feed catches up, the chain may change.
        for (const next of added.slice(index + 1, index + blocksAhead)) prefetch(next)
        const logs = block.logs ?? (await logsOf(block))
        // The next change removes this block and those after it, whose headers were not sent.
        if (logs === 'left') return
        block.isLogged = logs !== undefined
        if (logs) await sink.logs(block, logs)
      }
    },
  }
}
