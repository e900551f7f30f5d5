import { sql } from 'kysely'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import {
  emptyDatabase,
  type FreshDatabase,
  freshDatabase,
  hasEngine,
} from '../../../test/helpers/database.ts'
import type { Engine } from '../../../test/helpers/postgres.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { silentLog as log } from '../../lib/log.ts'
import { ensurePartitions } from '../pg/partitions.ts'
import { readMigrations } from './files.ts'
import { type MigrationProgress, migrateDatabase } from './migrate.ts'

const table = { name: '0001-thing', sql: 'create table thing (id int8 primary key, size int8)' }
const column = { name: '0002-label', sql: 'alter table thing add column label text' }
const index = {
  name: '0003-thing-size',
  sql: 'create index concurrently if not exists thing_size on thing (size);',
}

const indexOf = async ({ db }: FreshDatabase, name: string): Promise<boolean | undefined> => {
  const { rows } = await sql<{ valid: boolean }>`
    select indisvalid as valid from pg_index where indexrelid = to_regclass(${name})`.execute(db)
  return rows[0]?.valid
}

const filled = async (database: FreshDatabase): Promise<FreshDatabase> => {
  await migrateDatabase(database.db, { log, files: [table] })
  await sql`insert into thing select n, n % 1000 from generate_series(1, 20000) n`.execute(
    database.db,
  )
  return database
}

/** A transaction that has written to the table: the build waits for its end. */
const openWriter = async ({ connection }: FreshDatabase) => {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  await client.query('insert into thing values (-1, -1)')
  return { commit: () => client.query('commit').then(() => client.end()) }
}

const builders = async ({ db }: FreshDatabase) => {
  const { rows } = await sql<{ pid: number; phase: string }>`
    select pid, phase from pg_stat_progress_create_index where datname = current_database()`.execute(
    db,
  )
  return rows
}

describe.each<Engine>(['embedded', 'system'])('concurrent steps on %s', (engine) => {
  describe.skipIf(!hasEngine(engine))('a server', () => {
    test('writers are not blocked, other processes wait and report it, and the progress is reported', async () => {
      const database = await filled(await emptyDatabase(engine))
      const { db } = database
      const writer = await openWriter(database)
      const seen: MigrationProgress[] = []
      const first = migrateDatabase(db, {
        log,
        files: [table, index],
        onProgress: seen.push.bind(seen),
      })
      await waitFor('the build waits', async () => (await builders(database)).length === 1)
      const waits: object[] = []
      const waiting = { ...log, warn: (fields: object) => void waits.push(fields) }
      const second = migrateDatabase(db, { log: waiting, files: [table, index], lockReportMs: 200 })
      await waitFor('the wait is reported twice', () => waits.length > 1)
      expect(waits[0]).toEqual({
        waited_seconds: 0,
        holder: expect.objectContaining({ pid: expect.any(Number), application: 'portolan' }),
      })
      const bounded = migrateDatabase(db, { log, files: [table, index], lockLimitMs: 1 })
      await expect(bounded).rejects.toThrow(
        /^Another process is still migrating the database after 0 s \(database session \d+, portolan/,
      )
      const stopping = new AbortController()
      const stopped = migrateDatabase(db, {
        ...{ log, files: [table, index], signal: stopping.signal },
      })
      stopping.abort()
      await expect(stopped).rejects.toBe(stopping.signal.reason)
      await sql`insert into thing values (-2, -2)`.execute(db)
      await sql`update thing set size = -3 where id = -2`.execute(db)
      await waitFor('progress', () => seen.some(({ build }) => build?.phase.includes('waiting')))
      await writer.commit()
      expect(await first).toEqual({ applied: [index.name] })
      expect(await second).toEqual({ applied: [] })
      expect(seen[0]).toEqual({ name: index.name, step: 0, steps: 1 })
      expect(await indexOf(database, 'thing_size')).toBe(true)
    })

    test('an invalid index of a build that was killed is built again', async () => {
      const database = await filled(await emptyDatabase(engine))
      const writer = await openWriter(database)
      const killed = migrateDatabase(database.db, { log, files: [table, index] })
      const failed = killed.catch((error: unknown) => error)
      await waitFor('the build waits', async () => (await builders(database)).length === 1)
      const [builder] = await builders(database)
      await sql`select pg_terminate_backend(${builder!.pid})`.execute(database.db)
      expect(await failed).toBeInstanceOf(Error)
      await writer.commit()
      expect(await indexOf(database, 'thing_size')).toBe(false)
      expect(await migrateDatabase(database.db, { log, files: [table, index] })).toEqual({
        applied: [index.name],
      })
      expect(await indexOf(database, 'thing_size')).toBe(true)
    })

    test('an index that was built before the crash is only recorded', async () => {
      const database = await filled(await emptyDatabase(engine))
      await sql`create index thing_size on thing (size)`.execute(database.db)
      await migrateDatabase(database.db, { log, files: [table, index] })
      expect(await indexOf(database, 'thing_size')).toBe(true)
    })

    test('a migration that cannot have its table gives way to statements behind it', async () => {
      const database = await filled(await emptyDatabase(engine))
      const writer = await openWriter(database)
      const attempts: number[] = []
      const warn = (fields: object) => {
        if ('attempt' in fields) attempts.push(Number(fields.attempt))
      }
      const migrating = migrateDatabase(database.db, {
        log: { ...log, warn },
        files: [table, column],
      })
      await waitFor('it gave up once', () => attempts.length > 0, { timeoutMs: 30_000 })
      await sql`select count(*) from thing`.execute(database.db)
      await writer.commit()
      expect(await migrating).toEqual({ applied: [column.name] })
    })
  })
})

test('each partition of a partitioned table gets its index, those of later months too', async () => {
  const { db } = await freshDatabase()
  const step = {
    name: '9990-transfer-x',
    sql: 'create index concurrently if not exists transfer_x on transfer (block_number, block_time);',
  }
  await ensurePartitions(db, new Date('2026-11-16'))
  await migrateDatabase(db, { log, files: [...(await readMigrations()), step] })
  await ensurePartitions(db, new Date('2028-01-01'))
  const { rows } = await sql<{ without: number; valid: boolean }>`
    select indisvalid as valid, (
      select count(*)::int4 from pg_inherits p where p.inhparent = 'transfer'::regclass
      and not exists (select from pg_inherits i join pg_index x on x.indexrelid = i.inhrelid
        where i.inhparent = 'transfer_x'::regclass and x.indrelid = p.inhrelid)) as without
    from pg_index where indexrelid = 'transfer_x'::regclass`.execute(db)
  expect(rows).toEqual([{ valid: true, without: 0 }])
})
