import { expect, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { captureLog } from '../../../test/helpers/log-capture.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { deleteOldMinutes, listMinutes } from '../../storage/metrics/metrics.ts'
import { startRollup, type Totals } from './rollup.ts'

const { db } = await freshDatabase()
const { log } = await captureLog()

const totalsOf = (count: number): Totals => ({
  request_count: count,
  error_count: 0,
  refused_count: 0,
  gateway_count: 2 * count,
  gateway_error_count: 0,
  cache_hit_count: 0,
  cache_miss_count: 0,
  delivery_count: 0,
  delivery_failed_count: 0,
  latency_counts: [count, 0, 0],
})

test('what was counted since the last minute is written, and added up over restarts', async () => {
  // In the middle of a minute; the test moves it.
  let now = Date.UTC(2026, 10, 16, 12, 0, 30)
  let wake = () => {}
  const clock = {
    now: () => now,
    sleep: (ms: number, signal?: AbortSignal) =>
      signal
        ? new Promise<void>((resolve, reject) => {
            wake = resolve
            signal.addEventListener('abort', () => reject(signal.reason), { once: true })
          })
        : systemClock.sleep(ms),
  }
  let count = 100
  const holder = systemIds.uuid()
  const totals = () => totalsOf(count)
  const rollup = startRollup({ db, clock, log, holder, totals, lags: () => [] })
  const minutes = async () => {
    const rows = await listMinutes(db, new Date(0), new Date(now + 3_600_000))
    return rows.map((row) => [
      row.minute.toISOString().slice(11, 16),
      ...[row.request_count, row.gateway_count, row.latency_counts],
    ])
  }
  count = 110
  wake()
  await waitFor('the first minute', async () => (await minutes()).length === 1)
  now += 60_000
  count = 125
  await rollup.stop()
  expect(await minutes()).toEqual([
    ['12:00', 10, 20, [10, 0, 0]],
    ['12:01', 15, 30, [15, 0, 0]],
  ])
  count = 7
  const next = startRollup({ db, clock, log, holder, totals, lags: () => [] })
  count = 8
  await next.stop()
  expect((await minutes()).at(-1)).toEqual(['12:01', 16, 32, [16, 0, 0]])
  await deleteOldMinutes(db, new Date(now - 40_000))
  expect(await minutes()).toHaveLength(1)
})
