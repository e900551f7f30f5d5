/** How long an exchange of quick calls may take before it counts as stuck. */
export type StuckLimit = {
  ms(): number
  /** An exchange was answered after so long. */
  answered(ms: number): void
  /** An exchange that began then took longer than the limit. */
  exceeded(startedAt: number): void
}

// An exchange that takes so much longer than usual is stuck.
const stuckFactor = 8
const shortestMs = 2_000
const longestMs = 10_000

/** The limit follows the usual time of the node. It doubles when exceeded: a busy node is slow, not gone. */
export function createStuckLimit(now: () => number): StuckLimit {
  let usualMs = 0
  let patienceMs = shortestMs
  let patienceSince = 0
  return {
    ms: () => Math.min(Math.max(usualMs * stuckFactor, patienceMs), longestMs),
    answered: (ms) => {
      usualMs += (ms - usualMs) * 0.1
      patienceMs = shortestMs
    },
    exceeded: (startedAt) => {
      // Exchanges that were under way together count once.
      if (startedAt < patienceSince) return
      patienceMs = Math.min(patienceMs * 2, longestMs)
      patienceSince = now()
    },
  }
}
