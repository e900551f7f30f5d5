import { createLatency, type Latency } from '../../nodes/latency.ts'

/** When a second node is asked because the first one takes unusually long. */
export type Hedging = {
  /** Counts a call; answers after how many milliseconds it should be hedged, if ever. */
  begin(method: string): number | undefined
  /** Whether the bounded share of extra calls has room for one more. */
  take(): boolean
  add(method: string, ms: number): void
}

const largestShare = 0.1
// Saved up in quiet times, spent when a node begins to hang.
const largestBurst = 20
const maxMethods = 256
const shortestMs = 10

/** Learns the p95 of each method, and allows one extra call per ten. */
export function createHedging(): Hedging {
  const methods = new Map<string, Latency>()
  let credit = 0
  return {
    begin: (method) => {
      credit = Math.min(largestBurst, credit + largestShare)
      const p95 = methods.get(method)?.quantile(0.95)
      return p95 === undefined ? undefined : Math.max(p95, shortestMs)
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
