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
  /** Counts what an organization has used without having waited for it. */
  spend(organization_id: string, costMs: number): void
}

/** Shorter work does not wait. */
const exemptMs = 1
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

/** Makes the pace. An organization that is alone has all of the time. */
export function createLoopPace(now: () => number = performance.now.bind(performance)): LoopPace {
  /** When an organization has waited for all that it has used. */
  const paidUntil = new Map<string, number>()
  let last: string | undefined
  let changed = Number.NEGATIVE_INFINITY

  const spend = (organization_id: string, costMs: number, time: number) => {
    const until = Math.max(time, paidUntil.get(organization_id) ?? 0) + costMs / share
    // To the end: the first ones are those that were not heard of for the longest time.
    paidUntil.delete(organization_id)
    paidUntil.set(organization_id, until)
    if (paidUntil.size > maxOrganizations) paidUntil.delete(paidUntil.keys().next().value as string)
  }

  const isAlone = (time: number) => time - changed > rememberedMs

  return {
    note(organization_id) {
      // This runs for every gateway call. While two are active they change all the time.
      if (organization_id === last) return
      if (last !== undefined) changed = now()
      last = organization_id
    },
    take(organization_id, costMs) {
      const time = now()
      if (costMs <= exemptMs || isAlone(time)) return 0
      const wait = Math.max(0, (paidUntil.get(organization_id) ?? 0) - time)
      if (wait > maxWaitMs)
        throw new OperationError('RATE_LIMITED', {
          detail: 'Too many large requests of the organization wait, while others use the service.',
          retryAfter: Math.ceil(wait / 1_000),
        })
      spend(organization_id, costMs, time)
      return wait
    },
    spend(organization_id, costMs) {
      const time = now()
      if (costMs > exemptMs && !isAlone(time)) spend(organization_id, costMs, time)
    },
  }
}
