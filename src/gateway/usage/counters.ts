import type { Exemplar, HistogramCounts } from '../../lib/histogram.ts'
import type { Method } from '../rpc/methods.ts'

/** The outcomes of calls, as in the metrics. */
export const outcomes = [
  'ok',
  'node_error',
  'invalid',
  'unknown_method',
  'rate_limited',
  'unavailable',
  'timeout',
  'failed',
] as const

/** How a call ended. */
export type Outcome = (typeof outcomes)[number]

/** Bounds of the latency histogram in seconds: powers of two of a microsecond. */
export const latencyBounds: readonly number[] = Array.from(
  { length: 19 },
  (_, power) => 2 ** (power + 6) / 1e6,
)

/** How many buckets a latency can fall into. */
export const latencyBuckets: number = latencyBounds.length + 1

/** What is counted of the calls of a network. Plain numbers: they are added up for every call. */
export type Counters = {
  /** The names that `method` indices stand for; the last one is `other`. */
  methods: readonly string[]
  /** What the answers of each method depend on, such as `head`, `number`, `logs` or `send`. */
  classes: readonly string[]
  /** Counts a call; gives the place of its latency among the buckets. */
  count(method: Method | undefined, outcome: Outcome, microseconds: number): number
  /** Names the trace of a call that was counted. */
  trace(method: string, microseconds: number, trace_id: string): void
  countCache(hit: boolean): void
  /** Calls of a method that ended so. */
  calls(method: number, outcome: number): number
  /** The number of calls in each bucket, and the sum of their times in seconds. */
  latency(method: number): HistogramCounts
  cache(): { hits: number; misses: number }
}

const indexOf = Object.fromEntries(outcomes.map((name, index) => [name, index])) as Record<
  Outcome,
  number
>

/** Makes counters for the methods of a network. */
export function createCounters(list: readonly Method[]): Counters {
  const size = list.length + 1
  const width = latencyBuckets
  const byOutcome = new Float64Array(size * outcomes.length)
  const byBucket = new Float64Array(size * width)
  const sums = new Float64Array(size)
  const exemplars = new Map<number, Exemplar>()
  let hits = 0
  let misses = 0
  const bucketOf = (microseconds: number): number => {
    const bits = 32 - Math.clz32(microseconds)
    return bits <= 6 ? 0 : Math.min(bits - 6, width - 1)
  }
  return {
    methods: [...list.map(({ name }) => name), 'other'],
    classes: [...list.map(({ plan }) => plan.kind), 'other'],
    count(method, outcome, microseconds) {
      const index = method ? method.index : size - 1
      byOutcome[index * outcomes.length + indexOf[outcome]]! += 1
      const bucket = bucketOf(microseconds)
      byBucket[index * width + bucket]! += 1
      sums[index]! += microseconds
      return bucket
    },
    trace(method, microseconds, trace_id) {
      const found = list.findIndex(({ name }) => name === method)
      const index = found < 0 ? size - 1 : found
      const exemplar = { trace_id, value: microseconds / 1e6, time: Date.now() }
      exemplars.set(index * width + bucketOf(microseconds), exemplar)
    },
    countCache(hit) {
      if (hit) hits++
      else misses++
    },
    calls: (method, outcome) => byOutcome[method * outcomes.length + outcome] ?? 0,
    latency: (method) => {
      const buckets = [...byBucket.subarray(method * width, (method + 1) * width)]
      return {
        ...{ bounds: latencyBounds, buckets, sum: (sums[method] ?? 0) / 1e6 },
        exemplars: buckets.map((_, at) => exemplars.get(method * width + at)),
      }
    },
    cache: () => ({ hits, misses }),
  }
}
