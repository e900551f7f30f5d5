import type { Network } from '../../gateway/network.ts'
import { latencyBounds, outcomes } from '../../gateway/usage/counters.ts'
import type { Finished } from '../../http/exchange.ts'
import type { Totals } from '../../workers/metrics/rollup.ts'
import type { CourierStatus } from '../../workers/webhooks/courier.ts'
import type { Metrics } from './metrics.ts'

/** Counts for the rollup by minute what is not counted elsewhere. */
export type OperationTotals = {
  finished(finished: Pick<Finished, 'route' | 'status' | 'seconds'>): void
  read(parts: {
    networks: Iterable<Network>
    courier: Pick<CourierStatus, 'delivered' | 'failed'> | undefined
  }): Totals
}

/** Makes the counters of operations. */
export function createTotals(): OperationTotals {
  const latency = new Float64Array(latencyBounds.length + 1)
  let requests = 0
  let errors = 0
  let refused = 0
  return {
    finished({ route, status, seconds }) {
      if (route !== 'operations') return
      requests++
      if (status >= 500) errors++
      else if (status === 429) refused++
      // The bounds of the buckets double, so the number of bits of the microseconds names the bucket.
      const bits = 32 - Math.clz32(seconds * 1e6)
      latency[Math.min(Math.max(bits - 6, 0), latency.length - 1)]! += 1
    },
    read({ networks, courier }) {
      const all = [...latency]
      const gateway = { calls: 0, errors: 0, hits: 0, misses: 0 }
      for (const { counters } of networks) {
        const { hits, misses } = counters.cache()
        gateway.hits += hits
        gateway.misses += misses
        for (const index of counters.methods.keys()) {
          for (const [at, outcome] of outcomes.entries()) {
            const calls = counters.calls(index, at)
            gateway.calls += calls
            if (isError.has(outcome)) gateway.errors += calls
          }
          for (const [at, count] of counters.latency(index).buckets.entries()) all[at]! += count
        }
      }
      return {
        request_count: requests,
        error_count: errors,
        refused_count: refused,
        gateway_count: gateway.calls,
        gateway_error_count: gateway.errors,
        cache_hit_count: gateway.hits,
        cache_miss_count: gateway.misses,
        delivery_count: courier?.delivered ?? 0,
        delivery_failed_count: courier?.failed ?? 0,
        latency_counts: all,
      }
    },
  }
}

/** Metrics that count for the rollup too. */
export const withTotals = (metrics: Metrics, totals: OperationTotals): Metrics => ({
  ...metrics,
  finished(finished) {
    metrics.finished(finished)
    totals.finished(finished)
  },
})

// What a caller did wrong is no error of the installation.
const isError: ReadonlySet<string> = new Set(['unavailable', 'timeout', 'failed'])
