import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'

/** A process that has reported to others does not report the same again for this time. */
export const reportKeptMs = 1_000
// Between the decision to report and the time in the row.
const writeMs = 500

/** The time of the database from which on the reports of other processes count for a list that begins now. */
export const reportsSince = async (db: Db): Promise<Date> => {
  const { rows } = await sql<{ since: Date }>`
    select clock_timestamp() - make_interval(secs => ${(reportKeptMs + writeMs) / 1000}) as since`.execute(
    db,
  )
  return rows[0]!.since
}
