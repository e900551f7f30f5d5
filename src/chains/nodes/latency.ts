import { callBounds, createHistogram, type HistogramCounts } from '../../lib/histogram.ts'

/** How long calls take, as far as it has been seen. */
export type Latency = {
  add(ms: number): void
  /** Weighted towards the last calls. */
  mean(): number
  /** Undefined until enough calls have been seen: as many as a decision needs, or fewer to show it. */
  quantile(share: number, minSamples?: number): number | undefined
  /** All calls since the start, in seconds. */
  counts(): HistogramCounts
}

// The quantile is that of the last calls: a node that was slow an hour ago is not judged by it.
const ringSize = 128
// Of fewer calls one slow one is a quantile, which hedging would act on.
const usualSamples = 20
const weight = 0.1

/** Keeps the last calls. */
export function createLatency(): Latency {
  const ring = new Float64Array(ringSize)
  const histogram = createHistogram(callBounds)
  let count = 0
  let mean = 0
  // Sorting costs more than a call: the sorted copy serves until a quarter of it is new.
  let sorted = new Float64Array(0)
  let sortedAt = 0
  return {
    add: (ms) => {
      ring[count++ % ringSize] = ms
      histogram.add(ms / 1000)
      mean += (ms - mean) * (count === 1 ? 1 : weight)
    },
    mean: () => mean,
    counts: histogram.read,
    quantile: (share, minSamples = usualSamples) => {
      if (count < minSamples) return undefined
      if (sorted.length === 0 || count - sortedAt >= sorted.length / 4) {
        sorted = ring.slice(0, Math.min(count, ringSize)).sort()
        sortedAt = count
      }
      return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
    },
  }
}
