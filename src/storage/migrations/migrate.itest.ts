import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { emptyDatabase, hasEngine } from '../../../test/helpers/database.ts'
import type { Engine } from '../../../test/helpers/postgres.ts'
import { silentLog } from '../../lib/log.ts'
import { type Connection, openDatabase } from '../pg/database.ts'
import { tables } from '../pg/tables.ts'
import { readMigrations } from './files.ts'
import {
  migrateDatabase,
  NewerDatabaseError,
  PreviewDatabaseError,
  pendingMigrations,
  schemaState,
  schemaVersion,
} from './migrate.ts'

const log = silentLog
const files = await readMigrations()
const names = files.map(({ name }) => name)
// Files that build indexes run outside of the transaction, each for itself.
const isWhole = ({ sql: text }: { sql: string }) => !/^create index concurrently/m.test(text)
const wholeNames = files.filter(isWhole).map(({ name }) => name)
const bad = { name: '9999-bad', sql: 'create table half (a int); select 1/0;' }

const startMigrator = (connection: Connection) => {
  const script = `
    import { openDatabase } from ${JSON.stringify(join(import.meta.dirname, '../pg/database.ts'))}
    import { migrateDatabase } from ${JSON.stringify(join(import.meta.dirname, 'migrate.ts'))}
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const { db, stop } = openDatabase({ connection: JSON.parse(process.argv[1]), log })
    await db.introspection.getTables()
    process.stdout.write('ready')
    await migrateDatabase(db, { log })
    await stop()`
  return spawn(
    process.execPath,
    ['--input-type=module', '-e', script, JSON.stringify(connection)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
}

describe.each<Engine>(['embedded', 'system'])('migrations on %s', (engine) => {
  describe.skipIf(!hasEngine(engine))('a server', () => {
    test('bring an empty database up to date, once', async () => {
      const { db } = await emptyDatabase(engine)
      expect(await pendingMigrations(db)).toEqual(names)
      expect(await migrateDatabase(db, { log })).toEqual({ applied: names })
      expect(await pendingMigrations(db)).toEqual([])
      expect(await migrateDatabase(db, { log })).toEqual({ applied: [] })
      expect(await schemaVersion()).toBe(names.at(-1))
    })

    test('eight migrators at once: one migrates, the others wait for it', async () => {
      const { connection } = await emptyDatabase(engine)
      const databases = Array.from({ length: 8 }, () => openDatabase({ connection, log, max: 2 }))
      try {
        const results = await Promise.all(databases.map(({ db }) => migrateDatabase(db, { log })))
        const applied = results.map((result) => result.applied.length).sort()
        expect(applied).toEqual([0, 0, 0, 0, 0, 0, 0, names.length])
      } finally {
        await Promise.all(databases.map(({ stop }) => stop()))
      }
    })

    test('a migrator killed at any moment leaves all or nothing, and the next one succeeds', async () => {
      // Both engines run the same code: each has half of the moments.
      for (const wait of engine === 'embedded' ? [0, 10, 40] : [5, 20, 80]) {
        const { db, connection, stop } = await emptyDatabase(engine)
        const child = startMigrator(connection)
        await once(child.stdout, 'data')
        await delay(wait)
        child.kill('SIGKILL')
        await once(child, 'exit')
        const { applied } = await migrateDatabase(db, { log })
        // What is stored is a beginning: nothing, all in the transaction, or all.
        expect([0, names.length - wholeNames.length, names.length]).toContain(applied.length)
        expect(applied).toEqual(names.slice(names.length - applied.length))
        for (const table of Object.keys(tables))
          await sql`select from ${sql.table(table)}`.execute(db)
        await stop()
      }
    })

    test('a migration that fails halfway leaves nothing behind, and no lock', async () => {
      const { db } = await emptyDatabase(engine)
      await expect(
        migrateDatabase(db, { log, files: [...files.filter(isWhole), bad] }),
      ).rejects.toThrow('division by zero')
      expect(await pendingMigrations(db)).toEqual(names)
      expect((await sql`select to_regclass('half') as half`.execute(db)).rows).toEqual([
        { half: null },
      ])
      expect(await migrateDatabase(db, { log })).toEqual({ applied: names })
    })

    test('a long migration is not ended by the statement timeout, which then applies again', async () => {
      const { connection } = await emptyDatabase(engine)
      const database = openDatabase({ connection, log, max: 1, statementTimeoutMs: 1_000 })
      try {
        const slow = { name: '0000-slow', sql: 'select pg_sleep(1.5)' }
        expect(await migrateDatabase(database.db, { log, files: [slow] })).toEqual({
          applied: ['0000-slow'],
        })
        await expect(sql`select pg_sleep(1.5)`.execute(database.db)).rejects.toThrow(
          'statement timeout',
        )
      } finally {
        await database.stop()
      }
    })

    test('a newer database that only expands the schema is used, and not changed', async () => {
      const { db } = await emptyDatabase(engine)
      const newer = { name: '0999-future', sql: 'create table future (a int)' }
      await migrateDatabase(db, { log, files: [...files, newer] })
      expect(await schemaState(db)).toEqual({ pending: [], newer: ['0999-future'] })
      expect(await migrateDatabase(db, { log })).toEqual({ applied: [] })
      // Code that lacks a step of its own does not add it to a newer schema.
      await expect(
        migrateDatabase(db, { log, files: [...files.filter(isWhole), bad] }),
      ).rejects.toThrow(NewerDatabaseError)
    })

    test('a newer database that this version cannot use is refused with both versions', async () => {
      const { db } = await emptyDatabase(engine)
      const newer = {
        name: '0999-future',
        sql: `drop table job; update schema_migration_range set oldest_version = '0998-without-jobs'`,
      }
      await migrateDatabase(db, { log, files: [...files, newer] })
      const refusal = await migrateDatabase(db, { log }).catch((error: unknown) => error)
      expect(refusal).toBeInstanceOf(NewerDatabaseError)
      expect(refusal).toMatchObject({ databaseVersion: '0999-future', codeVersion: names.at(-1) })
      expect((refusal as Error).message).toContain('0999-future')
      expect((refusal as Error).message).toContain(names.at(-1))
      await expect(pendingMigrations(db)).rejects.toThrow(NewerDatabaseError)
    })

    test('a database of a preview is refused, and left as it is', async () => {
      const { db } = await emptyDatabase(engine)
      const preview = ['0001-access', '0212-nonce-memory-server-start']
      await migrateDatabase(db, { log, files: preview.map((name) => ({ name, sql: 'select 1' })) })
      const refusal = await migrateDatabase(db, { log }).catch((error: unknown) => error)
      expect(refusal).toBeInstanceOf(PreviewDatabaseError)
      expect((refusal as Error).message).toContain('0212-nonce-memory-server-start')
      expect((refusal as Error).message).toContain('a new data directory')
      await expect(pendingMigrations(db)).rejects.toThrow(PreviewDatabaseError)
      const left = (await db.introspection.getTables()).map(({ name }) => name)
      expect(left).toEqual(['schema_migration'])
    })
  })
})
