/** How many calls a node gets at once: as many as it answers in good time. */
export type LoadWindow = {
  size(): number
  /** An exchange of that many calls is over, while the node had so many in all. */
  add(exchange: { calls: number; startedAt: number; now: number; inFlight: number }): void
}

const firstSize = 200
const leastSize = 16
// Far above what a way around the world costs, and half of the time after which an exchange is stuck.
const slowMs = 1_000
const stepCalls = 16

/**
 * Makes a window. Given more than it can answer, a node answers all of it too late: everything would be
 * given up at the same time, and made elsewhere with the same end. It grows
 * quickly until the first sign of that, is halved then, and grows slowly from there on.
 */
export function createLoadWindow(): LoadWindow {
  let size = firstSize
  let threshold = Number.POSITIVE_INFINITY
  let cutAt = Number.NEGATIVE_INFINITY
  return {
    size: () => Math.floor(size),
    add({ calls, startedAt, now, inFlight }) {
      if (now - startedAt < slowMs) {
        // What the node makes of more is not known from less.
        if (inFlight * 2 > size) size += size < threshold ? calls : (stepCalls * calls) / size
        return
      }
      // Concurrent calls count as one measurement.
      if (startedAt < cutAt) return
      cutAt = now
      size = Math.max(leastSize, size / 2)
      threshold = size
    },
  }
}
