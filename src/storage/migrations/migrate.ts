// The schema and its migrations. They use `pg`. All missing steps are applied in one transaction under a lock,
// so that processes which start together do it once. A database of a newer version is refused before anything is
// written.

import { type Kysely, sql } from 'kysely'
import { type MigrationProvider, Migrator } from 'kysely/migration'
import type { Log } from '../../lib/log.ts'
import { isPreview, type MigrationFile, readMigrations } from './files.ts'

// biome-ignore lint/suspicious/noExplicitAny: migrations run before there is a schema to type
type AnyDb = Kysely<any>

const migrationTable = 'schema_migration'

/** The database was written by a newer Portolan than this one. */
export class NewerDatabaseError extends Error {
  override name = 'NewerDatabaseError'
  readonly databaseVersion: string
  readonly codeVersion: string
  constructor(databaseVersion: string, codeVersion: string) {
    super(
      `The database is at schema version ${databaseVersion}, but this Portolan knows only up to ${codeVersion}. Start a Portolan at least as new as the one that used this database last.`,
    )
    this.databaseVersion = databaseVersion
    this.codeVersion = codeVersion
  }
}

/** The database was created by a preview before 0.1.0. Its schema cannot be upgraded. */
export class PreviewDatabaseError extends Error {
  override name = 'PreviewDatabaseError'
  constructor(databaseVersion: string) {
    super(
      `The database was created by a preview of Portolan (schema version ${databaseVersion}), which cannot be upgraded. Start with an empty database or a new data directory. To keep a copy of the old data, run "portolan export" with the old version first.`,
    )
  }
}

const newest = (names: readonly string[]): string => names.at(-1) ?? 'empty'

/** The schema version of this code: the name of its last migration. */
export const schemaVersion = async (): Promise<string> =>
  newest((await readMigrations()).map(({ name }) => name))

const appliedMigrations = async (db: AnyDb): Promise<string[]> => {
  const found = await sql<{ found: boolean }>`
    select to_regclass(${migrationTable}) is not null as found`.execute(db)
  if (!found.rows[0]?.found) return []
  const { rows } = await sql<{ name: string }>`
    select name from ${sql.table(migrationTable)} order by name`.execute(db)
  return rows.map(({ name }) => name)
}

const pendingOf = async (db: AnyDb, files: readonly MigrationFile[]): Promise<string[]> => {
  const known = files.map(({ name }) => name)
  const applied = await appliedMigrations(db)
  if (isPreview(applied)) throw new PreviewDatabaseError(newest(applied))
  if (applied.some((name) => !known.includes(name)))
    throw new NewerDatabaseError(newest(applied), newest(known))
  return known.filter((name) => !applied.includes(name))
}

/** The migrations that the database still lacks; throws NewerDatabaseError and PreviewDatabaseError. */
export const pendingMigrations = async (db: AnyDb): Promise<string[]> =>
  await pendingOf(db, await readMigrations())

const providerOf = (files: readonly MigrationFile[]): MigrationProvider => ({
  getMigrations: async () =>
    Object.fromEntries(
      files.map((file) => [
        file.name,
        { up: async (db: AnyDb) => void (await sql.raw(file.sql).execute(db)) },
      ]),
    ),
})

const runMigrator = async (db: AnyDb, files: readonly MigrationFile[]): Promise<string[]> =>
  await db.connection().execute(async (connection) => {
    // Both the wait for another process's migration and a migration itself may be long.
    await sql`set statement_timeout = 0`.execute(connection)
    try {
      const migrator = new Migrator({
        db: connection,
        provider: providerOf(files),
        migrationTableName: migrationTable,
        migrationLockTableName: `${migrationTable}_lock`,
      })
      const { error, results } = await migrator.migrateToLatest()
      if (error) throw error
      return (results ?? []).map(({ migrationName }) => migrationName)
    } finally {
      await sql`reset statement_timeout`.execute(connection).catch(() => {})
    }
  })

/** Brings the schema up to this code's version, in one transaction under a lock. */
export const migrateDatabase = async (
  db: AnyDb,
  { log, files: given }: { log: Log; files?: readonly MigrationFile[] },
): Promise<{ applied: string[] }> => {
  const files = given ?? (await readMigrations())
  // Without the lock when there is nothing to do: it is bound to a session, which PgBouncer shares.
  if ((await pendingOf(db, files)).length === 0) return { applied: [] }
  const applied = await runMigrator(db, files).catch(async (error: unknown) => {
    // A newer process may have been first: say that rather than what the migrator makes of it.
    await pendingOf(db, files)
    throw error
  })
  if (applied.length > 0) log.info({ applied }, 'database schema migrated')
  return { applied }
}
