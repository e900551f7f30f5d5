import { sql } from 'kysely'
import { findNewestCredential } from '../../storage/access/newest-credential.ts'
import type { Db } from '../../storage/pg/database.ts'
import { type Finding, failure, ok, warning } from './finding.ts'

const tolerableMs = 2_000
const fix = 'Set the clock, best by NTP: timedatectl set-ntp true'

/** Compares the clock of this machine with the database and with what was written before. */
export async function checkClock(
  db: Db,
  nonceWindowSeconds: number,
  now: () => number = Date.now,
): Promise<Finding> {
  const before = now()
  const { rows } = await sql<{ time: Date }>`select clock_timestamp() as time`.execute(db)
  const after = now()
  // The database looked at its clock somewhere in between.
  const time = rows[0]?.time.getTime() ?? before
  const skew = time < before ? before - time : Math.max(0, time - after)
  const newest = (await findNewestCredential(db))?.create_time.getTime() ?? 0
  if (newest - after > tolerableMs)
    return failure(
      'clock',
      `The newest key was made at ${new Date(newest).toISOString()}, after this machine's ${new Date(after).toISOString()}.`,
      fix,
    )
  const detail = `${(skew / 1000).toFixed(1)} s off the clock of the database`
  if (skew > (nonceWindowSeconds * 1000) / 2) return failure('clock', detail, fix)
  if (skew > tolerableMs) return warning('clock', detail, fix)
  return ok('clock', new Date(after).toISOString())
}
