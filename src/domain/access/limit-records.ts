// The cache of rate-limit records. A change is announced, and a record is read again after a minute in case the announcement
// is lost. Known records outlive the database for `graceMs`, as keys do (`gateway-keys.ts`): without that the gateway would
// refuse the keys that it knows. At most `maxEntries` organizations are kept.

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

type Known = {
  records: readonly ChainLimits[]
  /** When the database last said so. */
  checked: number
  /** Announcements may have been missed since. */
  isDoubted: boolean
  /** When the database could last not be asked; undefined when it could. */
  awayAt: number | undefined
}

/** Keeps the rate-limit records of recent callers in memory; a change is announced to all processes. */
export function createLimitRecords(
  { db, clock }: { db: Db; clock: Clock },
  {
    // The announcement is not durable, so that a record is believed for a minute at most.
    maxAgeMs = 60_000,
    maxEntries = 10_000,
    // As long as keys outlive the database.
    graceMs = 600_000,
    recheckMs = 1_000,
    // A database that does not answer is not waited for longer than this for a record that is known.
    patienceMs = 1_000,
    ...options
  }: {
    defaults: RateLimits
    maxAgeMs?: number
    maxEntries?: number
    graceMs?: number
    recheckMs?: number
    patienceMs?: number
  },
): LimitRecords {
  let { defaults } = options
  const cache = new Map<string, Known>()
  let generation = 0

  const load = async (organization_id: string, chain: string) => {
    const begun = generation
    const records = await listRateLimits(db, organization_id)
    // A change announced while the query ran may be missing in its answer: it is used, not kept.
    if (begun === generation) {
      if (cache.size >= maxEntries && !cache.has(organization_id))
        cache.delete(cache.keys().next().value as string)
      const checked = clock.now()
      cache.set(organization_id, { records, checked, isDoubted: false, awayAt: undefined })
    }
    return resolveLimits(records, chain, defaults)
  }

  /** The first call notices that the database is unreachable; the others are answered at once, and one per second asks again. */
  const reload = (
    organization_id: string,
    chain: string,
    entry: Known,
  ): RateLimits | Promise<RateLimits> => {
    const isKept = () => clock.now() - entry.checked <= graceMs
    const kept = () => resolveLimits(entry.records, chain, defaults)
    const { awayAt } = entry
    if (awayAt !== undefined && isKept()) {
      if (Math.abs(clock.now() - awayAt) >= recheckMs) {
        entry.awayAt = clock.now()
        load(organization_id, chain).catch(() => {})
      }
      return kept()
    }
    const answer = load(organization_id, chain)
    if (!isKept()) return answer
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(reject, patienceMs, new Error('The database does not answer.'))
    return Promise.race([answer, late])
      .catch((error: unknown) => {
        entry.awayAt = clock.now()
        // Removed meanwhile: a change was announced, and what it changed cannot be read.
        if (!isKept() || cache.get(organization_id) !== entry) throw error
        return kept()
      })
      .finally(() => clearTimeout(timer))
  }

  return {
    limitsOf(organization_id, chain) {
      const entry = cache.get(organization_id)
      if (!entry) return load(organization_id, chain)
      const isFresh = entry.checked + maxAgeMs > clock.now() && !entry.isDoubted
      return isFresh
        ? resolveLimits(entry.records, chain, defaults)
        : reload(organization_id, chain, entry)
    },
    forget(organization_id) {
      generation++
      if (organization_id !== undefined) cache.delete(organization_id)
      // Not removed: the database may be gone again before they are used.
      else for (const entry of cache.values()) entry.isDoubted = true
    },
    setDefaults(given) {
      defaults = given
    },
  }
}
