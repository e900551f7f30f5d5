import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, inject, onTestFinished, TestRunner } from 'vitest'
import { silentLog } from '../../src/lib/log.ts'
import type { EmbeddedConnection } from '../../src/storage/embedded/layout.ts'
import type { Database } from '../../src/storage/pg/database.ts'
import { distributeDatabase, dropOnOthers } from './citus.ts'
import type { Engine } from './postgres.ts'

/** A migrated database for one test file. */
export type FreshDatabase = Database & { connection: EmbeddedConnection }

const template = 'portolan_template'
const templateLock = 7_162_534

/** Whether this machine has the engine; for `describe.skipIf`. */
export const hasEngine = (engine: Engine): boolean => inject('postgres')[engine] !== undefined

const connect = async (connection: EmbeddedConnection): Promise<pg.Client> => {
  const deadline = Date.now() + 30_000
  for (;;) {
    const client = new pg.Client(connection)
    client.on('error', () => {})
    try {
      await client.connect()
      return client
    } catch (error) {
      await client.end().catch(() => {})
      if (Date.now() > deadline) throw error
      await delay(25)
    }
  }
}

/** Runs statements on an engine's own database, which no test may change otherwise. */
export const asOwner = async <T>(
  engine: Engine,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const connection = inject('postgres')[engine]
  if (!connection) throw new Error(`this machine has no ${engine} PostgreSQL`)
  const client = await connect(connection)
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

const migrate = async (connection: EmbeddedConnection): Promise<void> => {
  const { openDatabase } = await import('../../src/storage/pg/database.ts')
  const { migrateDatabase } = await import('../../src/storage/migrations/migrate.ts')
  const database = openDatabase({ connection, log: silentLog })
  try {
    await migrateDatabase(database.db, { log: silentLog })
  } finally {
    await database.stop()
  }
}

const ensureTemplate = (engine: Engine): Promise<EmbeddedConnection> =>
  asOwner(engine, async (owner) => {
    const connection = inject('postgres')[engine]!
    const exists = async () =>
      (await owner.query('select from pg_database where datname = $1', [template])).rowCount === 1
    if (await exists()) return connection
    // Test files run in parallel processes; the first one migrates for all.
    await owner.query('select pg_advisory_lock($1)', [templateLock])
    if (await exists()) return connection
    const draft = `${template}_draft`
    await owner.query(`drop database if exists ${draft}`)
    await owner.query(`create database ${draft}`)
    await migrate({ ...connection, database: draft })
    await owner.query(`alter database ${draft} rename to ${template}`)
    return connection
  })

const create = async (engine: Engine, from: string): Promise<FreshDatabase> => {
  const connection = {
    ...inject('postgres')[engine]!,
    database: `test_${randomBytes(6).toString('hex')}`,
  }
  await asOwner(engine, (owner) =>
    // The default strategy writes every page to the log: 0.2 to 0.3 s of CPU per database instead of 0.03.
    owner.query(`create database ${connection.database} template ${from} strategy file_copy`),
  )
  const others = engine === 'embedded' && from === template ? inject('otherMachines') : []
  if (others.length > 0) await distributeDatabase(connection, others)
  const { openDatabase } = await import('../../src/storage/pg/database.ts')
  // Tests that do many things at once wait for each other, longer where the CPU is withheld.
  const database = openDatabase({ connection, log: silentLog, connectTimeoutMs: 60_000 })
  let stopping: Promise<void> | undefined
  const stop = async () => {
    await database.stop()
    await asOwner(engine, (owner) =>
      owner.query(`drop database if exists ${connection.database} with (force)`),
    )
    await dropOnOthers(connection.database, others)
  }
  const fresh = {
    ...database,
    connection,
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
  if (TestRunner.getCurrentTest()) onTestFinished(fresh.stop)
  else afterAll(fresh.stop)
  return fresh
}

/** A migrated database for a test file (called at its top) or a test, dropped after it; in a `beforeAll`, return its `stop`. */
export const freshDatabase = async (engine: Engine = 'embedded'): Promise<FreshDatabase> => {
  await ensureTemplate(engine)
  return create(engine, template)
}

/** A database without any table, dropped after the test file or test. */
export const emptyDatabase = (engine: Engine = 'embedded'): Promise<FreshDatabase> =>
  create(engine, 'template0')
