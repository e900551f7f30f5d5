import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import {
  erasePage,
  finishDeletion,
  listOpenDeletions,
} from '../../storage/access/organization-erasing.ts'
import type { Db } from '../../storage/pg/database.ts'
import { assertLease } from '../../storage/tracking/leases.ts'
import { type HeldLease, startLeased } from '../lease.ts'

/** What deletions are carried out with. */
export type ErasingOptions = {
  db: Db
  clock: Clock
  log: Log
  /** An id of this process. */
  holder: string
  /** Rows of a table in one statement. */
  pageSize?: number
  /** Between two pages: blocks and operations go first. */
  pauseMs?: number
  intervalMs?: number
  /**
   * An organization is not gone before so long after the request: calls that were under way end, and
   * every process has written its counters.
   */
  settleMs?: number
}

/**
 * Erases organizations that were deleted, a page of each in turn, in one process at a time. Every page
 * is a few short transactions; after a crash it continues with the rest.
 */
export function startOrganizationErasing(options: ErasingOptions): { stop(): Promise<void> } {
  const { db, clock, log, holder } = options
  const { pageSize = 1_000, pauseMs = 50, intervalMs = 2_000, settleMs = 90_000 } = options

  const erase = async (organization_id: string, request_time: Date, lease: HeldLease) => {
    // A process that lost the lease stops here. Two that overlap for a page erase the same rows,
    // which is harmless.
    await db.transaction().execute((trx) => assertLease(trx, lease.name, lease.epoch))
    const erased = await erasePage(db, { organization_id, limit: pageSize })
    if (Object.values(erased).some((count) => count > 0)) return true
    // Not yet gone, although empty: a call that was under way may still write.
    if (clock.now() - request_time.getTime() < settleMs) return false
    if (!(await finishDeletion(db, organization_id, new Date(clock.now())))) return false
    log.info({ event: 'organization_erased', organization_id }, 'organization erased')
    return true
  }

  const run = async (lease: HeldLease, signal: AbortSignal, works: () => void): Promise<void> => {
    while (!signal.aborted) {
      let isBusy = false
      for (const { organization_id, request_time } of await listOpenDeletions(db)) {
        if (signal.aborted) return
        // One that cannot be finished yet must not keep the others waiting.
        const done = await erase(organization_id, request_time, lease).catch((error: unknown) => {
          log.warn({ err: error, organization_id }, 'erasing an organization failed, will retry')
          return false
        })
        isBusy ||= done
      }
      works()
      await clock.sleep(isBusy ? pauseMs : intervalMs, signal).catch(() => {})
    }
  }
  return startLeased({ db, clock, log, name: 'organization erasing', holder, run })
}
