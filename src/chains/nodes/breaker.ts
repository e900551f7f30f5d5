/** Whether calls go to a node: yes, no, or a few to try. */
export type BreakerState = 'closed' | 'open' | 'half_open'

/** Keeps calls away from a node that fails, and allows a few on trial before all. */
export type Breaker = {
  state(): BreakerState
  /** Whether another call may be made now, `trials` of them being under way. */
  allows(trials: number): boolean
  succeed(): void
  fail(now: number): void
  /** Opens at once: the node does not answer a probe. */
  trip(now: number): void
  /** A probe was answered: after the pause, some calls may try. */
  probeSucceeded(now: number): void
  errorRate(): number
}

// Long enough that one failure is no rate, short enough that a repaired node is used soon.
const windowSize = 50
const minSamples = 20
const highestRate = 0.5
const firstPauseMs = 500
const longestPauseMs = 10_000
const maxTrials = 3

/** How soon a breaker opens and closes. */
export type BreakerRules = {
  /** Opens after so many failures without an answer in between. */
  failuresInRow: number
  /** Closes after so many answers on trial. */
  successesToClose: number
  /** Whether the error rate begins anew when it closes. */
  forgetsOnClose: boolean
}

/** The rules for a node that gets many calls at once. */
const usualRules: BreakerRules = { failuresInRow: 5, successesToClose: 5, forgetsOnClose: true }

/** A breaker, closed. */
export function createBreaker(rules = usualRules): Breaker {
  const { failuresInRow, successesToClose, forgetsOnClose } = rules
  // A ring buffer of the last calls, 1 for each failure.
  const ring = new Uint8Array(windowSize)
  let samples = 0
  let failures = 0
  let inRow = 0
  let state: BreakerState = 'closed'
  let openedAt = 0
  let pauseMs = firstPauseMs
  let successes = 0

  const record = (isFailure: 0 | 1): void => {
    const place = samples++ % windowSize
    failures += isFailure - ring[place]!
    ring[place] = isFailure
  }
  const open = (now: number): void => {
    // A failed trial doubles the pause.
    if (state === 'half_open') pauseMs = Math.min(pauseMs * 2, longestPauseMs)
    state = 'open'
    openedAt = now
  }
  const errorRate = (): number => (samples === 0 ? 0 : failures / Math.min(samples, windowSize))

  return {
    state: () => state,
    allows: (trials) => state === 'closed' || (state === 'half_open' && trials < maxTrials),
    succeed: () => {
      record(0)
      inRow = 0
      if (state !== 'half_open' || ++successes < successesToClose) return
      state = 'closed'
      pauseMs = firstPauseMs
      if (!forgetsOnClose) return
      ring.fill(0)
      samples = 0
      failures = 0
    },
    fail: (now) => {
      record(1)
      inRow++
      const isBad = inRow >= failuresInRow || (samples >= minSamples && errorRate() >= highestRate)
      if (state === 'half_open' || (state === 'closed' && isBad)) open(now)
    },
    trip: (now) => {
      if (state !== 'open') open(now)
      else openedAt = now
    },
    probeSucceeded: (now) => {
      if (state !== 'open' || now - openedAt < pauseMs) return
      state = 'half_open'
      successes = 0
      inRow = 0
    },
    errorRate,
  }
}
