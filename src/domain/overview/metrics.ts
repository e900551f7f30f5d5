import { invalidRequest } from '../../contract/validate.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { listHeadMinutes, listMinutes } from '../../storage/metrics/metrics.ts'
import type { AdminHandler } from '../context.ts'
import { readTimes } from '../time-range.ts'

const minuteMs = 60_000
const usualMs = 3_600_000
const longestMs = 86_400_000

/** Lists counts and latencies by minute. */
export const ListMetrics: AdminHandler<'ListMetrics'> = async ({ db, clock }, request) => {
  const { from_time, to_time = new Date(clock.now()) } = readTimes(request)
  const from = from_time ?? new Date(to_time.getTime() - usualMs)
  // One minute more than a day, because clients round the two ends separately.
  if (to_time.getTime() - from.getTime() > longestMs + minuteMs)
    throw invalidRequest([
      { field: 'start_time', reason: 'OUT_OF_RANGE', detail: 'Is more than a day before the end.' },
    ])
  const minutes = await listMinutes(db, from, to_time)
  const heads = await listHeadMinutes(db, from, to_time)
  return {
    resolution_seconds: minuteMs / 1000,
    points: minutes.map(({ minute, latency_counts, ...counts }) => ({
      time: toTimestamp(minute),
      ...counts,
      p50_ms: quantile(latency_counts, 0.5),
      p99_ms: quantile(latency_counts, 0.99),
    })),
    heads: heads.map((row) => ({
      time: toTimestamp(row.minute),
      chain: row.chain,
      network: row.network,
      block_number: `${row.block_number}`,
      lag_blocks: row.lag_blocks === null ? null : `${row.lag_blocks}`,
    })),
  }
}

/** The latency in milliseconds below which a part of the calls is; null without calls. */
export function quantile(counts: readonly number[], part: number): number | null {
  const all = counts.reduce((sum, count) => sum + count, 0)
  if (all === 0) return null
  let below = 0
  for (const [at, count] of counts.entries()) {
    if (below + count >= all * part) {
      // Bucket 0 ends at 64 µs, each other one at twice the end of the one before.
      const end = 2 ** (at + 6) / 1000
      const start = at === 0 ? 0 : end / 2
      const inside = count === 0 ? 1 : (all * part - below) / count
      return Math.round((start + (end - start) * inside) * 1000) / 1000
    }
    below += count
  }
  return 2 ** (counts.length + 5) / 1000
}
