// The schema and its migrations. They use `pg`. Missing steps are applied under a lock, so that processes which start
// together apply them once: files in one transaction, and files that build indexes concurrently outside of it. A
// database of a newer version is used where that version allows it, and refused before anything is written otherwise.

import { type Kysely, sql } from 'kysely'
import type { Log } from '../../lib/log.ts'
import { type BuildProgress, runConcurrently } from './concurrent.ts'
import { isPreview, type MigrationFile, readMigrations } from './files.ts'
import { type LockWait, releaseMigrationLock, takeMigrationLock } from './lock.ts'
import { withLockTimeout } from './lock-timeout.ts'
import { isConcurrent } from './statements.ts'

// biome-ignore lint/suspicious/noExplicitAny: migrations run before there is a schema to type
type AnyDb = Kysely<any>

const migrationTable = 'schema_migration'

/** The database was written by a newer Portolan, and this one cannot use it. */
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

/** Where a migration is: the step that runs, and how far it is where the server reports it. */
export type MigrationProgress = { name: string; step: number; steps: number; build?: BuildProgress }

/** What a database has and lacks. `newer` are applied migrations of a newer version that this code can do without. */
export type SchemaState = { pending: string[]; newer: string[] }

const newest = (names: readonly string[]): string => names.at(-1) ?? 'empty'

/** The schema version of this code: the name of its last migration. */
export const schemaVersion = async (): Promise<string> =>
  newest((await readMigrations()).map(({ name }) => name))

const hasTable = async (db: AnyDb, name: string): Promise<boolean> => {
  const { rows } = await sql<{ found: boolean }>`
    select to_regclass(${name}) is not null as found`.execute(db)
  return rows[0]?.found === true
}

const appliedMigrations = async (db: AnyDb): Promise<string[]> => {
  if (!(await hasTable(db, migrationTable))) return []
  const { rows } = await sql<{ name: string }>`
    select name from ${sql.table(migrationTable)} order by name`.execute(db)
  return rows.map(({ name }) => name)
}

/** Whether code of a version may run on a newer database. */
const isAllowed = async (db: AnyDb, version: string): Promise<boolean> => {
  if (!(await hasTable(db, 'schema_migration_range'))) return false
  const { rows } = await sql<{ oldest_version: string }>`
    select oldest_version from schema_migration_range`.execute(db)
  return rows[0] !== undefined && rows[0].oldest_version <= version
}

const stateOf = async (db: AnyDb, files: readonly MigrationFile[]): Promise<SchemaState> => {
  const known = files.map(({ name }) => name)
  const applied = await appliedMigrations(db)
  if (isPreview(applied)) throw new PreviewDatabaseError(newest(applied))
  const newer = applied.filter((name) => !known.includes(name))
  const pending = known.filter((name) => !applied.includes(name))
  // A version between the two cannot be missing: migrations of one version are applied in order.
  if (newer.length > 0 && (pending.length > 0 || !(await isAllowed(db, newest(known)))))
    throw new NewerDatabaseError(newest(applied), newest(known))
  return { pending, newer }
}

/** What the database has and lacks; throws NewerDatabaseError and PreviewDatabaseError. */
export const schemaState = async (db: AnyDb): Promise<SchemaState> =>
  await stateOf(db, await readMigrations())

/** The migrations that the database still lacks; throws NewerDatabaseError and PreviewDatabaseError. */
export const pendingMigrations = async (db: AnyDb): Promise<string[]> =>
  (await schemaState(db)).pending

const record = async (db: AnyDb, name: string): Promise<void> => {
  await sql`insert into ${sql.table(migrationTable)} (name, timestamp)
    values (${name}, ${new Date().toISOString()})`.execute(db)
}

/** Applies files in one transaction. */
const applyTogether = async (
  session: AnyDb,
  files: readonly MigrationFile[],
  { log, onFile }: { log: Log; onFile(file: MigrationFile): void },
): Promise<void> =>
  await withLockTimeout(
    session,
    async (trx) => {
      for (const file of files) {
        onFile(file)
        await sql.raw(file.sql).execute(trx)
        await record(trx, file.name)
      }
    },
    (attempt) => log.warn({ attempt }, 'a table that a migration changes is locked; trying again'),
  )

/** Neighbours that run in one transaction, and each file that runs outside of one alone. */
const groupsOf = (files: readonly MigrationFile[]): MigrationFile[][] => {
  const groups: MigrationFile[][] = []
  for (const file of files) {
    const last = groups.at(-1)
    if (last && !isConcurrent(file.sql) && !isConcurrent(last[0]!.sql)) last.push(file)
    else groups.push([file])
  }
  return groups
}

type Options = LockWait & {
  files?: readonly MigrationFile[]
  onProgress?: ((progress: MigrationProgress) => void) | undefined
}

const applyPending = async (
  db: AnyDb,
  session: AnyDb,
  files: readonly MigrationFile[],
  { log, onProgress = () => {} }: Options,
): Promise<string[]> => {
  // Another process may have migrated during the wait.
  const { pending } = await stateOf(session, files)
  const todo = files.filter(({ name }) => pending.includes(name))
  await sql`create table if not exists ${sql.table(migrationTable)} (
    name varchar(255) primary key, timestamp varchar(255) not null)`.execute(session)
  let step = 0
  const progressOf = ({ name }: MigrationFile) => ({ name, step, steps: todo.length })
  const begin = (file: MigrationFile) => {
    step = todo.indexOf(file)
    onProgress(progressOf(file))
  }
  for (const group of groupsOf(todo)) {
    const first = group[0]!
    if (!isConcurrent(first.sql)) {
      await applyTogether(session, group, { log, onFile: begin })
      continue
    }
    begin(first)
    log.info({ migration: first.name }, 'building indexes while the database is in use')
    await runConcurrently(first.sql, {
      ...{ db, session },
      onBuild: (build) => onProgress({ ...progressOf(first), build }),
    })
    await record(session, first.name)
  }
  return todo.map(({ name }) => name)
}

/** Brings the schema up to this code's version, under a lock. */
export const migrateDatabase = async (
  db: AnyDb,
  options: Options,
): Promise<{ applied: string[] }> => {
  const { log } = options
  const files = options.files ?? (await readMigrations())
  const { pending, newer } = await stateOf(db, files)
  if (newer.length > 0)
    log.warn(
      { schema_version: newest(newer) },
      'the database has the schema of a newer version, which this version can use',
    )
  // Without the lock when there is nothing to do: it is bound to a session, which PgBouncer shares.
  if (pending.length === 0) return { applied: [] }
  const applied = await db.connection().execute(async (session) => {
    // Both the wait for another process's migration and a migration itself may be long.
    await sql`set statement_timeout = 0`.execute(session)
    try {
      await takeMigrationLock(session, options)
      return await applyPending(db, session, files, options)
    } finally {
      await releaseMigrationLock(session)
      await sql`reset statement_timeout`.execute(session).catch(() => {})
    }
  })
  if (applied.length > 0) log.info({ applied }, 'database schema migrated')
  return { applied }
}
