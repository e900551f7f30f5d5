// The cache of rate-limit records. A change is announced, and a record lives for a minute at most in case the announcement
// is lost. At most `maxEntries` organizations are kept.

import type { Clock } from '../../lib/clock.ts'
import { listRateLimits } from '../../storage/access/rate-limits.ts'
import { notifyChange } from '../../storage/pg/changes.ts'
import type { Db } from '../../storage/pg/database.ts'
import { type ChainLimits, type RateLimits, resolveLimits } from '../limits/decision.ts'

/** The limits that apply, from memory where they can be. */
export type LimitRecords = {
  /** Answers at once for an organization that called before. */
  limitsOf(organization_id: string, chain: string): RateLimits | Promise<RateLimits>
  /** Reads the records of an organization again, or those of all, at the next call. */
  forget(organization_id?: string): void
  /** The limits of organizations without records, from now on. */
  setDefaults(defaults: RateLimits): void
}

/** Notifies every process that the records of an organization changed. */
export const limitsChanged = (db: Db, organization_id: string): Promise<void> =>
  notifyChange(db, { kind: 'rate_limit', organization_id })

/** Keeps the rate-limit records of recent callers in memory; a change is announced to all processes. */
export function createLimitRecords(
  { db, clock }: { db: Db; clock: Clock },
  // The announcement is not durable, so that a record lives for a minute at most.
  {
    maxAgeMs = 60_000,
    maxEntries = 10_000,
    ...options
  }: {
    defaults: RateLimits
    maxAgeMs?: number
    maxEntries?: number
  },
): LimitRecords {
  let { defaults } = options
  const cache = new Map<string, { records: readonly ChainLimits[]; until: number }>()
  let generation = 0

  const load = async (organization_id: string, chain: string) => {
    const begun = generation
    const records = await listRateLimits(db, organization_id)
    // A change announced while the query ran may be missing in its answer: it is used, not kept.
    if (begun === generation) {
      if (cache.size >= maxEntries) cache.delete(cache.keys().next().value as string)
      cache.set(organization_id, { records, until: clock.now() + maxAgeMs })
    }
    return resolveLimits(records, chain, defaults)
  }

  return {
    limitsOf(organization_id, chain) {
      const entry = cache.get(organization_id)
      if (entry && entry.until > clock.now()) return resolveLimits(entry.records, chain, defaults)
      return load(organization_id, chain)
    },
    forget(organization_id) {
      generation++
      if (organization_id === undefined) cache.clear()
      else cache.delete(organization_id)
    },
    setDefaults(given) {
      defaults = given
    },
  }
}
