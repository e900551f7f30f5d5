import { type MetricFamily, renderMetrics, type Sample } from './render.ts'

/** The metrics of one of several processes. */
export type ProcessMetrics = { process: string; families: readonly MetricFamily[] }

// Gauges of what all processes hold together; of any other gauge a sum would mean nothing.
const summed: ReadonlySet<string> = new Set([
  'portolan_http_connections',
  'portolan_http_body_bytes',
  'portolan_gateway_cache_bytes',
  'portolan_gateway_connections',
  'portolan_gateway_subscriptions',
  'portolan_gateway_filters',
  'portolan_database_connections',
  'portolan_limiter_entries',
  'portolan_upstream_requests',
])
// The same in every process: they are read from the database or the disk.
const equal: ReadonlySet<string> = new Set([
  'portolan_info',
  'portolan_queue_rows',
  'portolan_webhooks_disabled',
  'portolan_disk_free_bytes',
  'portolan_disk_size_bytes',
])

/**
 * The metrics of several processes as one text: counters and histograms are added up, gauges too where that has a
 * meaning. Other gauges that more than one process shows get the label `process`.
 */
export function mergeMetrics(processes: readonly ProcessMetrics[], accept: string | undefined) {
  const byName = new Map<string, { first: MetricFamily; parts: ProcessPart[] }>()
  for (const { process, families } of processes)
    for (const family of families) {
      const known = byName.get(family.name) ?? { first: family, parts: [] }
      known.parts.push({ process, values: family.values })
      byName.set(family.name, known)
    }
  const merged = [...byName.values()].map(({ first, parts }) => ({
    ...first,
    values: mergeValues(first, parts),
  }))
  return renderMetrics(merged, accept)
}

/** The counters of processes that ended, added up: without them the sums would fall and look like a restart. */
export function addEnded(
  ended: readonly MetricFamily[],
  families: readonly MetricFamily[],
): MetricFamily[] {
  const counts = families.filter(({ type }) => type !== 'gauge')
  const names = new Set([...ended, ...counts].map(({ name }) => name))
  return [...names].flatMap((name) => {
    const same = [...ended, ...counts].filter((one) => one.name === name)
    const [first] = same
    if (!first) return []
    const parts = same.map(({ values }) => ({ process: '', values }))
    return [{ ...first, values: mergeValues(first, parts) }]
  })
}

type ProcessPart = { process: string; values: readonly Sample[] }

function mergeValues({ name, type }: MetricFamily, parts: readonly ProcessPart[]): Sample[] {
  const isSum = type !== 'gauge' || summed.has(name)
  const shown = parts.filter(({ values }) => values.length > 0)
  const isLabeled = !isSum && !equal.has(name) && shown.length > 1
  const merged = new Map<string, Sample>()
  for (const { process, values } of shown)
    for (const one of values) {
      const labels = isLabeled ? { ...one.labels, process } : one.labels
      const key = `${one.metricName ?? ''} ${JSON.stringify(Object.entries(labels).sort(byName))}`
      const known = merged.get(key)
      if (known) known.value = isSum ? known.value + one.value : one.value
      else merged.set(key, { ...one, labels })
    }
  return [...merged.values()]
}

const byName = ([one]: [string, unknown], [other]: [string, unknown]): number =>
  one < other ? -1 : 1
