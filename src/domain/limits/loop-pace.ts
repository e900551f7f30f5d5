import { OperationError } from '../../contract/errors/errors.ts'

/** Divides the event loop among organizations where a single piece of work holds it up for long. */
export type LoopPace = {
  /** Records a call of an organization. */
  note(organization_id: string): void
  /**
   * Milliseconds until the organization may hold up the event loop for so long, which then counts. Throws where the
   * wait would be too long.
   */
  take(organization_id: string, costMs: number): number
  /** Throws as `take` would, and counts nothing. */
  check(organization_id: string, costMs: number): void
  /** Counts what an organization has used without having waited for it. */
  spend(organization_id: string, costMs: number): void
  /** Counts a large answer that an organization receives, from the cache or from a node. */
  answer(organization_id: string, bytes: number, isCached: boolean): void
  /** Milliseconds until the large answers of an organization are made up for, three seconds at most. */
  owedMs(organization_id: string): number
}

/** Shorter work does not wait. */
export const exemptMs = 2
/**
 * The part of the time for which the long work of one organization may hold up the event loop. Below one in a hundred, so
 * that it does not reach the 99th percentile of the others.
 */
const share = 0.008
/** A body is in memory while it waits: at most 8 MiB for each organization, and for so long after its client left. */
const maxWaitMs = 3_000
/** For so long after a call of another organization, one is not alone. */
const rememberedMs = 2_000
const maxOrganizations = 10_000

/** Smaller answers do not count. */
export const largeAnswerBytes = 131_072
/** To read an answer from the cache and to write it takes 2 ms for 1 MiB; to receive and to check it takes 6 ms more. */
const cachedBytesPerMs = 524_288
const receivedBytesPerMs = 131_072
/**
 * The part of the time for the large answers of one organization. More than for bodies, because they are written in parts that
 * take 0.2 ms: 26 MB a second from the cache, 6.5 MB a second from nodes.
 */
const answerShare = 0.05

/** Makes the pace. An organization that is alone has all of the time. */
export function createLoopPace(now: () => number = performance.now.bind(performance)): LoopPace {
  /** When an organization has waited for all that it has used, and for its large answers. */
  const paidUntil = new Map<string, number>()
  const answeredUntil = new Map<string, number>()
  let last: string | undefined
  let changed = Number.NEGATIVE_INFINITY

  const add = (until: Map<string, number>, organization_id: string, ms: number, time: number) => {
    const sum = Math.max(time, until.get(organization_id) ?? 0) + ms
    // To the end: the first ones are those that were not heard of for the longest time.
    until.delete(organization_id)
    until.set(organization_id, sum)
    if (until.size > maxOrganizations) until.delete(until.keys().next().value as string)
  }
  const spend = (organization_id: string, costMs: number, time: number) =>
    add(paidUntil, organization_id, costMs / share, time)

  const isAlone = (time: number) => time - changed > rememberedMs

  const waitOf = (organization_id: string, costMs: number, time: number): number => {
    if (costMs <= exemptMs || isAlone(time)) return 0
    const wait = Math.max(0, (paidUntil.get(organization_id) ?? 0) - time)
    if (wait > maxWaitMs)
      throw new OperationError('RATE_LIMITED', {
        detail: 'Too many large requests of the organization wait, while others use the service.',
        retryAfter: Math.ceil(wait / 1_000),
      })
    return wait
  }

  return {
    note(organization_id) {
      // This runs for every gateway call. While two are active they change all the time.
      if (organization_id === last) return
      if (last !== undefined) changed = now()
      last = organization_id
    },
    check: (organization_id, costMs) => void waitOf(organization_id, costMs, now()),
    take(organization_id, costMs) {
      const time = now()
      const wait = waitOf(organization_id, costMs, time)
      if (costMs > exemptMs && !isAlone(time)) spend(organization_id, costMs, time)
      return wait
    },
    spend(organization_id, costMs) {
      const time = now()
      if (costMs > exemptMs && !isAlone(time)) spend(organization_id, costMs, time)
    },
    answer(organization_id, bytes, isCached) {
      const time = now()
      if (bytes <= largeAnswerBytes || isAlone(time)) return
      const waitMs = bytes / (isCached ? cachedBytesPerMs : receivedBytesPerMs) / answerShare
      const leftMs = maxWaitMs - Math.max(0, (answeredUntil.get(organization_id) ?? 0) - time)
      // Several at once, or a very large one, must not lock an organization out.
      add(answeredUntil, organization_id, Math.min(waitMs, leftMs), time)
    },
    owedMs(organization_id) {
      // This runs for every gateway call.
      if (answeredUntil.size === 0) return 0
      const until = answeredUntil.get(organization_id)
      if (until === undefined) return 0
      const time = now()
      if (until > time && !isAlone(time)) return until - time
      answeredUntil.delete(organization_id)
      return 0
    },
  }
}
