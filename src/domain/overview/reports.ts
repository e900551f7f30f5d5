import type { Clock } from '../../lib/clock.ts'
import { isAlone } from '../../storage/access/key-holders.ts'
import { reportsSince } from '../../storage/metrics/report-time.ts'
import { type Change, notifyChange } from '../../storage/pg/changes.ts'
import type { Db } from '../../storage/pg/database.ts'

/** How long other processes have to report what they see. */
const reportMs = 500

/**
 * Asks the other processes for a report and gives them the time to write it. Answers the time from which on reports count,
 * and undefined without a wait where there is no other process.
 */
export async function askOthers(
  { db, clock, signal }: { db: Db; clock: Clock; signal: AbortSignal },
  change: Change,
): Promise<Date | undefined> {
  if (await isAlone(db)) return undefined
  const since = await reportsSince(db)
  await notifyChange(db, change)
  await clock.sleep(reportMs, signal)
  return since
}
