/** One point of ListMetrics. */
export type MetricPoint = {
  time: string
  request_count: number
  error_count: number
  refused_count: number
  gateway_count: number
  cache_hit_count: number
  cache_miss_count: number
  delivery_count: number
  delivery_failed_count: number
  p50_ms: number | null
  p99_ms: number | null
}

/** The points as lines of charts: counts become rates, missing minutes are gaps. */
export function metricSeries(points: readonly MetricPoint[], seconds: number) {
  const sorted = [...points].sort((a, b) => a.time.localeCompare(b.time))
  const filled = sorted.flatMap((point, index): (MetricPoint | { time: string })[] => {
    const before = sorted[index - 1]
    const gap = before ? Date.parse(point.time) - Date.parse(before.time) : 0
    // One empty point breaks the line; a whole night of them would only be drawn as nothing.
    return gap > seconds * 2_500
      ? [{ time: new Date(Date.parse(point.time) - seconds * 1000).toISOString() }, point]
      : [point]
  })
  const line = (value: (point: MetricPoint) => number | null) =>
    filled.map((point) => ('request_count' in point ? value(point) : null))
  const last = sorted.at(-1)
  const part = (count: number, whole: number) => (whole > 0 ? count / whole : null)
  return {
    times: filled.map(({ time }) => Math.floor(Date.parse(time) / 1000)),
    requests: line((point) => point.request_count / seconds),
    errors: line((point) => point.error_count / seconds),
    refused: line((point) => point.refused_count / seconds),
    gateway: line((point) => point.gateway_count / seconds),
    hits: line((point) => point.cache_hit_count / seconds),
    deliveries: line((point) => (point.delivery_count * 60) / seconds),
    failedDeliveries: line((point) => (point.delivery_failed_count * 60) / seconds),
    p50: line((point) => point.p50_ms),
    p99: line((point) => point.p99_ms),
    latest: {
      requests: last && last.request_count / seconds,
      errorRate: last && part(last.error_count, last.request_count),
      hitRate: last && part(last.cache_hit_count, last.cache_hit_count + last.cache_miss_count),
      deliveries: last && last.delivery_count / seconds,
      failedDeliveries: last?.delivery_failed_count,
      p50: last?.p50_ms,
      p99: last?.p99_ms,
    },
  }
}
