import { createLatency, type Latency } from '../../nodes/latency.ts'

/** When a second node is asked because the first one takes unusually long. */
export type Hedging = {
  /** Counts a call; answers after how many milliseconds it should be hedged, Infinity for never. */
  begin(method: string): number
  /** Whether the bounded share of extra calls has room for one more. */
  take(): boolean
  add(method: string, ms: number): void
}

const largestShare = 0.1
// Saved up in quiet times, spent when a node begins to hang.
const largestBurst = 20
const maxMethods = 256
const shortestMs = 10

/**
 * Learns the p95 of each method, and allows one extra call per ten. A call that takes as long as a block is hedged
 * before its p95, because its answer would be of an old block. Methods that usually take as long keep to their p95:
 * otherwise they would spend the extra calls of all others.
 */
export function createHedging(slowCallMs: () => number): Hedging {
  const methods = new Map<string, Latency>()
  let credit = 0
  return {
    begin: (method) => {
      credit = Math.min(largestBurst, credit + largestShare)
      const latency = methods.get(method)
      const p95 = latency?.quantile(0.95)
      if (latency === undefined || p95 === undefined) return slowCallMs()
      const median = latency.quantile(0.5) ?? p95
      return Math.max(Math.min(p95, Math.max(slowCallMs(), 2 * median)), shortestMs)
    },
    take: () => {
      if (credit < 1) return false
      credit--
      return true
    },
    add: (method, ms) => {
      let latency = methods.get(method)
      if (!latency) {
        if (methods.size >= maxMethods) return
        latency = createLatency()
        methods.set(method, latency)
      }
      latency.add(ms)
    },
  }
}
