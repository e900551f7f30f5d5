import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  listOldHistories,
  type Removed,
  removeOldHistory,
} from '../../storage/webhooks/delivery-retention.ts'
import { pauseStreams } from '../../storage/webhooks/streams.ts'

/** How to build it. */
export type HistoryRetentionOptions = {
  db: Db
  clock: Clock
  log: Log
  /** How long what came to an end is kept. */
  keepMs: number
  batch?: number
  /** Between two batches: deliveries go first. */
  pauseMs?: number
  intervalMs?: number
}

/**
 * Removes notifications that came to an end long ago, in small batches, and pauses event streams that were not used for
 * as long. Every process runs one: each passes over the rows that another one holds.
 */
export function startHistoryRetention(options: HistoryRetentionOptions): { stop(): Promise<void> } {
  const { db, clock, log, keepMs, batch = 500, pauseMs = 50, intervalMs = 3_600_000 } = options
  const stopping = new AbortController()
  const { signal } = stopping

  const sweep = async (): Promise<void> => {
    const before = new Date(clock.now() - keepMs)
    let count = 0
    // Scope by scope, each page in a statement of its own, so that locks are short and a stop is
    // quick.
    for (const scope of await listOldHistories(db, before)) {
      let after: Removed['next']
      do {
        if (signal.aborted) return
        const removed = await removeOldHistory(db, scope, { before, after, limit: batch })
        count += removed.count
        after = removed.next
        if (after) await clock.sleep(pauseMs, signal).catch(() => {})
      } while (after)
    }
    if (count > 0) log.info({ count }, 'old webhook histories removed')
    const paused = await pauseStreams(db, before)
    if (paused > 0) log.info({ count: paused }, 'unused event streams paused')
  }

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await sweep().catch((error: unknown) =>
        log.warn({ err: error }, 'removing old webhook histories failed, will retry'),
      )
      await clock.sleep(intervalMs, signal).catch(() => {})
    }
  }
  const running = run()
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}
