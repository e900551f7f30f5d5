/** How many calls a node may get. */
export type RateGate = {
  /** Milliseconds until the next call may be made; 0 for now. */
  waitMs(now: number): number
  /** Counts a call, whether or not it was allowed. */
  take(now: number): void
  /** Counts a call from its start on; `end` is called once it is answered or has failed. */
  begin(now: number): void
  end(now: number): void
  /** The node said that it is too much. */
  coolDown(now: number, retryAfterMs?: number): void
  /** An answer came: the next refusal begins with a short pause again. */
  relax(): void
  isCooling(now: number): boolean
}

// Used where a node names no time. Doubled, because it may count refused calls too.
const firstPauseMs = 500
const longestPauseMs = 60_000

/** The pauses that a node asks for. */
export function createPauses(): Pick<RateGate, 'waitMs' | 'coolDown' | 'relax' | 'isCooling'> {
  let closedUntil = 0
  let pauseMs = firstPauseMs
  return {
    waitMs: (now) => Math.max(0, closedUntil - now),
    coolDown: (now, retryAfterMs) => {
      // Of many refusals at the same time only the first makes the pauses longer.
      if (closedUntil > now && retryAfterMs === undefined) return
      closedUntil = Math.max(closedUntil, now + Math.min(retryAfterMs ?? pauseMs, longestPauseMs))
      if (retryAfterMs === undefined) pauseMs = Math.min(pauseMs * 2, longestPauseMs)
    },
    relax: () => {
      pauseMs = firstPauseMs
    },
    isCooling: (now) => closedUntil > now,
  }
}

/** A token bucket of one second's calls, and the pauses that the node asks for. */
export function createRateGate(perSecond: number | undefined): RateGate {
  const rate = perSecond ?? Number.POSITIVE_INFINITY
  const pauses = createPauses()
  // At least one call, or a rate below one a second would never let a call pass.
  const most = Math.max(1, rate)
  let tokens = most
  let filledAt = 0

  const refill = (now: number): void => {
    tokens = Math.min(most, tokens + (Math.max(0, now - filledAt) * rate) / 1000)
    filledAt = now
  }
  const take = (now: number): void => {
    if (perSecond === undefined) return
    refill(now)
    // Probes are made in any case; the debt that they may leave is bounded.
    tokens = Math.max(-most, tokens - 1)
  }
  return {
    ...pauses,
    waitMs: (now) => {
      const pauseMs = pauses.waitMs(now)
      if (pauseMs > 0 || perSecond === undefined) return pauseMs
      refill(now)
      return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * 1000) / rate)
    },
    take,
    begin: take,
    end: () => {},
  }
}
