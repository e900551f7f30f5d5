import { Counter, Gauge, type Registry } from 'prom-client'
import type { HistogramCounts } from '../../lib/histogram.ts'

/** The labels of one series and its value. */
export type Reading = { labels: Record<string, string>; value: number }

type Shown = { name: string; help: string; labelNames?: readonly string[] }

/** Exports numbers that another part counts; they are read on each scrape. A counter must only rise. */
export function show(
  registry: Registry,
  kind: 'counter' | 'gauge',
  { name, help, labelNames = [] }: Shown,
  read: () => Iterable<Reading> | Promise<Iterable<Reading>>,
): void {
  const Kind = kind === 'counter' ? Counter : Gauge
  new Kind({
    ...{ name, help, labelNames: [...labelNames], registers: [registry] },
    async collect() {
      const readings = await read()
      // After the wait: another scrape meanwhile would find nothing.
      this.reset()
      for (const { labels, value } of readings) this.inc(labels, value)
    },
  })
}

/** The labels of one histogram and its counts. */
export type HistogramReading = { labels: Record<string, string>; counts: HistogramCounts }

/** Exports histograms that are counted elsewhere: prom-client has none that could be filled. */
export function showHistogram(
  registry: Registry,
  { name, help, labelNames = [] }: Shown,
  read: () => Iterable<HistogramReading>,
): void {
  const metric = {
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    labelNames: [...labelNames],
    get: async () => ({
      ...{ name, help, type: metric.type, aggregator: metric.aggregator },
      values: [...read()].flatMap(({ labels, counts }) => samplesOf(name, labels, counts)),
    }),
    reset() {},
  }
  registry.registerMetric(metric as never)
}

function samplesOf(name: string, labels: Record<string, string>, counts: HistogramCounts) {
  const { bounds, buckets, sum, exemplars } = counts
  let count = 0
  const samples = buckets.map((one, at) => {
    // Buckets of Prometheus are cumulative.
    count += one
    const seen = exemplars[at]
    return {
      labels: { ...labels, le: String(bounds[at] ?? '+Inf') },
      value: count,
      metricName: `${name}_bucket`,
      exemplar: seen && {
        labelSet: { trace_id: seen.trace_id },
        value: seen.value,
        timestamp: seen.time / 1000,
      },
    }
  })
  return [
    ...samples,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ]
}
