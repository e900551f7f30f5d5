/** Counts values in buckets. Cheap enough for every call of a node or an endpoint. */
export type Histogram = {
  /** Adds a value; with the id of the trace that it was measured in, if there is one. */
  add(value: number, trace_id?: string): void
  read(): HistogramCounts
}

/** What a histogram has counted. */
export type HistogramCounts = {
  bounds: readonly number[]
  /** One per bound and one for larger values, not cumulative. */
  buckets: readonly number[]
  sum: number
  /** The last traced value of each bucket. */
  exemplars: readonly (Exemplar | undefined)[]
}

/** A value that was measured in a trace. */
export type Exemplar = { trace_id: string; value: number; time: number }

/** Bounds in seconds for a single call over a network. */
export const callBounds: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

/** Bounds in seconds for work that waits for blocks, queues and retries. */
export const waitBounds: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 21_600, 86_400,
]

/** Makes an empty histogram. */
export function createHistogram(bounds: readonly number[]): Histogram {
  const buckets = new Float64Array(bounds.length + 1)
  const exemplars: (Exemplar | undefined)[] = new Array(bounds.length + 1).fill(undefined)
  let sum = 0
  return {
    add(value, trace_id) {
      let at = 0
      while (at < bounds.length && value > bounds[at]!) at++
      buckets[at]! += 1
      sum += value
      if (trace_id !== undefined) exemplars[at] = { trace_id, value, time: Date.now() }
    },
    read: () => ({ bounds, buckets: [...buckets], sum, exemplars: [...exemplars] }),
  }
}
