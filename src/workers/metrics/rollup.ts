// Writes what this process counted in each minute, so that charts have a history without a monitoring system and after
// a restart. It uses storage. It costs two statements a minute; a minute that cannot be written is added to the next.

import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import {
  addMinute,
  deleteOldMinutes,
  type MinuteRow,
  setHeads,
} from '../../storage/metrics/metrics.ts'
import type { Db } from '../../storage/pg/database.ts'

/** What a process has counted since its start. */
export type Totals = Omit<MinuteRow, 'minute' | 'holder'>

const minuteMs = 60_000
const keptMs = 2 * 86_400_000
// Old minutes are deleted about once an hour by each process.
const deleteEvery = 60
const stopTimeoutMs = 1_000

/** Starts the rollup. */
export function startRollup(options: {
  db: Db
  clock: Clock
  log: Log
  holder: string
  totals(): Totals
  lags(): { network_id: number; lag_blocks: number | null }[]
}): { stop(): Promise<void> } {
  const { db, clock, log, holder, totals, lags } = options
  const stopping = new AbortController()
  let last = totals()

  const write = async (time: number) => {
    const now = totals()
    const minute = new Date(Math.floor(time / minuteMs) * minuteMs)
    await addMinute(db, { minute, holder, ...difference(now, last) })
    last = now
    await setHeads(db, minute, lags())
  }

  const run = async () => {
    for (let turn = 0; !stopping.signal.aborted; turn++) {
      const begun = clock.now()
      // Ends just before the minute does, so that what is written is of this one.
      const left = minuteMs - (begun % minuteMs) - 50
      await clock.sleep(left > 0 ? left : left + minuteMs, stopping.signal).catch(() => {})
      if (stopping.signal.aborted) break
      try {
        await write(begun)
        if (turn % deleteEvery === 0) await deleteOldMinutes(db, new Date(clock.now() - keptMs))
      } catch (error) {
        if (!stopping.signal.aborted) log.warn({ err: error }, 'counts of the minute not written')
      }
    }
    // A stop may come while a minute is written: what was counted since is written in any case.
    await write(clock.now()).catch(() => {})
  }
  const running = run()

  return {
    stop: async () => {
      stopping.abort()
      // The last minute is not worth waiting for a database that does not answer.
      await Promise.race([running, clock.sleep(stopTimeoutMs)])
    },
  }
}

function difference(now: Totals, before: Totals): Totals {
  const less = (name: Exclude<keyof Totals, 'latency_counts'>) =>
    Math.max(0, Math.round(now[name] - before[name]))
  return {
    request_count: less('request_count'),
    error_count: less('error_count'),
    refused_count: less('refused_count'),
    gateway_count: less('gateway_count'),
    gateway_error_count: less('gateway_error_count'),
    cache_hit_count: less('cache_hit_count'),
    cache_miss_count: less('cache_miss_count'),
    delivery_count: less('delivery_count'),
    delivery_failed_count: less('delivery_failed_count'),
    latency_counts: now.latency_counts.map((count, at) =>
      Math.max(0, Math.round(count - (before.latency_counts[at] ?? 0))),
    ),
  }
}
