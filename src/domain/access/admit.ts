import { OperationError } from '../../contract/errors.ts'
import type { Decision } from '../limits/decision.ts'
import { isBlocked, rateLimitHeaders, retryAfterSeconds } from '../limits/headers.ts'
import type { Limiter } from '../limits/limiter.ts'
import type { LimitRecords } from './limit-records.ts'

/** The single check of rate limits, in front of operations and gateway calls alike. */
export type Admission = {
  /** Counts calls of an organization on a chain; the decision says whether they may go on. */
  admit(organization_id: string, chain: string, cost?: number): Decision | Promise<Decision>
}

/** Joins the records of an organization with the counters. */
export function createAdmission(records: LimitRecords, limiter: Limiter): Admission {
  return {
    admit(organization_id, chain, cost = 1) {
      const limits = records.limitsOf(organization_id, chain)
      // Without awaiting what is there already: the gateway makes tens of thousands of calls a second.
      if (limits instanceof Promise)
        return limits.then((known) => limiter.take({ organization_id, chain, limits: known, cost }))
      return limiter.take({ organization_id, chain, limits, cost })
    },
  }
}

/** The refusal of a call that does not fit into a window. */
export function rateLimited(decision: Decision): OperationError {
  const { window, limit } = decision
  if (isBlocked(decision))
    return new OperationError('RATE_LIMIT_BLOCKED', { headers: rateLimitHeaders(decision) })
  return new OperationError('RATE_LIMITED', {
    detail: `The limit of ${limit} calls per ${window} is used up.`,
    headers: rateLimitHeaders(decision),
    retryAfter: retryAfterSeconds(decision),
  })
}
