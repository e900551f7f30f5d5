// Periodic cleaning: partitions, retention, expired rows, erased organizations, the audit chain. It uses
// storage. Every task works in small pages, so that no lock is held for long, and can be repeated after a
// crash. Tasks whose steps depend on each other (erasing, the audit chain) run in one process, by a lease; the
// others run in every process and skip rows that another one holds.

import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { type CredentialUse, touchCredentials } from '../../storage/access/credentials.ts'
import { deleteExpiredIdempotencyKeys } from '../../storage/access/idempotency-keys.ts'
import { deleteExpiredNonces } from '../../storage/access/nonces.ts'
import { recountUses } from '../../storage/access/quotas.ts'
import { deleteOldRateUsage } from '../../storage/access/rate-usage.ts'
import type { Db } from '../../storage/pg/database.ts'
import { ensurePartitions } from '../../storage/pg/partitions.ts'
import { deleteOldEvents } from '../../storage/tracking/operational-events.ts'
import { deleteOldSenderNonces } from '../../storage/transactions/sender-nonces.ts'

/** How to build the janitor. */
export type JanitorOptions = {
  db: Db
  clock: Clock
  log: Log
  /** Credentials used since the last call. */
  takeUsedCredentials(): readonly CredentialUse[]
  /** Records that the memory of nonces is in use, so that an older copy of it is recognized. */
  keepNonces?(): Promise<void>
  intervalMs?: number
}

// A page of deletes: large enough for a busy minute, small enough for a short lock.
const nonceBatch = 5_000
// The time of last use is a hint: beyond it the oldest are dropped.
const maxUnnoted = 10_000
// Steps that read much and change rarely.
const slowEveryMs = 3_600_000

/**
 * Sweeps what has expired and makes next month's room ahead of time. Every process runs one: each
 * step is idempotent and skips rows that another one holds.
 */
export function startJanitor(options: JanitorOptions): { stop(): Promise<void> } {
  const { db, clock, log, takeUsedCredentials, keepNonces, intervalMs = 10_000 } = options
  const stopping = new AbortController()
  let slowAt = 0
  /** Uses that are not noted yet: their row was locked, or the database was unreachable. */
  let unnoted: readonly CredentialUse[] = []

  const noteUses = async () => {
    const uses = new Map<string, CredentialUse>()
    for (const use of [...unnoted, ...takeUsedCredentials()]) uses.set(use.credential_id, use)
    unnoted = [...uses.values()].slice(-maxUnnoted)
    unnoted = await touchCredentials(db, unnoted, new Date(clock.now()))
  }

  const sweep = async () => {
    const now = clock.now()
    await keepNonces?.()
    await noteUses()
    // Repeats while pages are full. A stop ends it between two pages.
    let deleted = nonceBatch
    while (deleted === nonceBatch && !stopping.signal.aborted)
      deleted = await deleteExpiredNonces(db, new Date(now), nonceBatch)
    deleted = nonceBatch
    while (deleted === nonceBatch && !stopping.signal.aborted)
      deleted = await deleteExpiredIdempotencyKeys(db, new Date(now), nonceBatch)
    if (now < slowAt) return
    await ensurePartitions(db, new Date(now))
    await deleteOldRateUsage(db, new Date(now))
    await deleteOldEvents(db)
    await deleteOldSenderNonces(db)
    const corrected = await recountUses(db)
    if (corrected > 0) log.warn({ corrected }, 'quota counters differed and were corrected')
    slowAt = now + slowEveryMs
  }

  const run = async () => {
    while (!stopping.signal.aborted) {
      await sweep().catch((error: unknown) => log.warn({ err: error }, 'sweep failed, will retry'))
      await clock.sleep(intervalMs, stopping.signal).catch(() => {})
    }
  }
  const running = run()
  return {
    async stop() {
      stopping.abort()
      await running
      // The uses since the last sweep would be lost otherwise.
      await keepNonces?.().catch(() => {})
      await noteUses().catch(() => {})
    },
  }
}
