const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** The pauses after a first, second, … failed attempt, as Standard Webhooks recommends. */
export const retryPauses: readonly number[] = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
]

// So that what failed together does not come back together.
const jitter = 0.2
const longestWait = 24 * hour

/**
 * When to try again after so many failed attempts; undefined when all are spent. A receiver may ask
 * for a longer pause with Retry-After, of at most a day.
 */
export const nextAttempt = (options: {
  now: number
  /** Failed attempts of this round, the last one included. */
  failed: number
  retryAfter: string | undefined
  /** Between 0 and 1. */
  random: number
}): number | undefined => {
  const { now, failed, retryAfter, random } = options
  const pause = retryPauses[failed - 1]
  if (pause === undefined) return undefined
  const own = Math.round(pause * (1 - jitter + 2 * jitter * random))
  return now + Math.max(own, Math.min(parseRetryAfter(retryAfter, now), longestWait))
}

/** Milliseconds that a Retry-After asks for, in seconds or as a date; none when it is neither. */
const parseRetryAfter = (text: string | undefined, now: number): number => {
  if (text === undefined) return 0
  if (/^\d{1,9}$/.test(text)) return Number(text) * second
  const time = Date.parse(text)
  return Number.isNaN(time) ? 0 : Math.max(0, time - now)
}
