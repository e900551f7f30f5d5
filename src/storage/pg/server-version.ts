import { sql } from 'kysely'
import type { Db } from './database.ts'

/** The server is older than what the SQL is written for. */
export class OldServerError extends Error {
  override name = 'OldServerError'
}

const oldest = 15

/** Refuses a PostgreSQL that is too old, before anything is written to it. */
export const checkServerVersion = async (db: Db): Promise<void> => {
  const { rows } = await sql<{ version: number; name: string }>`
    select current_setting('server_version_num')::int4 as version,
      current_setting('server_version') as name`.execute(db)
  const { version = 0, name = '' } = rows[0] ?? {}
  if (version < oldest * 10_000)
    throw new OldServerError(
      `The database is PostgreSQL ${name}, but Portolan needs ${oldest} or newer.`,
    )
}
