import { silentLog } from '../../lib/log.ts'
import { readMigrations } from '../../storage/migrations/files.ts'
import { migrateDatabase, pendingMigrations } from '../../storage/migrations/migrate.ts'
import { type GlobalOptions, print, type Shell } from '../shell.ts'
import { formatTable } from '../table.ts'
import { withDatabase } from './with-database.ts'

/** Migrates the database, or says what is missing. */
export const runMigrate = (
  shell: Shell,
  options: GlobalOptions & { status?: boolean },
): Promise<void> =>
  withDatabase(shell, options, async ({ db }) => {
    if (options.status) {
      const pending = new Set(await pendingMigrations(db))
      const rows = (await readMigrations()).map(({ name }) => [
        name,
        pending.has(name) ? 'missing' : 'applied',
      ])
      print(shell, formatTable(['MIGRATION', 'STATUS'], rows))
      return
    }
    const { applied } = await migrateDatabase(db, { log: silentLog })
    for (const name of applied) print(shell, `${name} applied`)
    if (applied.length === 0) print(shell, 'The database has the schema of this version already.')
  })
