import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { silentLog } from '../../src/lib/log.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import { migrateDatabase } from '../../src/storage/migrations/migrate.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { bundledService } from './bundle.ts'
import { embeddedBinaries } from './postgres.ts'

const run = promisify(execFile)

/** Initializes as the program does, with the PostgreSQL that it finds. */
const initializeByProgram = async (dataDir: string): Promise<void> => {
  const main = await bundledService()
  await run(process.execPath, [main, 'organizations', 'list', '--data-dir', dataDir], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORTOLAN_DATABASE__EMBEDDED__SETTINGS: 'fsync: false',
    },
  })
}

/** Initializes with the PostgreSQL that comes with the service. */
const initializeEmbedded = async (dataDir: string): Promise<void> => {
  const server = await startEmbeddedPostgres({
    dataDir,
    binaries: await embeddedBinaries(),
    log: silentLog,
    settings: { fsync: false },
  })
  const { db, stop } = openDatabase({ connection: server.connection, log: silentLog })
  await migrateDatabase(db, { log: silentLog })
  await stop()
  await server.stop()
}

/**
 * Copies a folder that is made once per run. Test files run in parallel processes: the first one that needs the
 * folder makes it for all.
 */
const copyOnce = async (
  name: string,
  make: (dataDir: string) => Promise<void>,
  target: string,
): Promise<void> => {
  const folder = join(inject('initializedDataDir'), name)
  const [dataDir, lock, done] = [`${folder}-data`, `${folder}-lock`, `${folder}-done`]
  const isFirst = await mkdir(lock).then(
    () => true,
    () => false,
  )
  if (isFirst) {
    await make(dataDir)
    await mkdir(done)
  }
  const deadline = Date.now() + 60_000
  while (!existsSync(done)) {
    if (Date.now() > deadline) throw new Error('the data directory was not initialized in time')
    await delay(50)
  }
  // Keeps the owner: as root, the database runs as another user.
  await run('cp', ['-a', dataDir, target])
}

/**
 * Copies a data directory with all migrations and no organization: `initdb` and the migrations cost about two
 * seconds of CPU, a copy a tenth of that.
 */
export const copyInitializedDataDir = (target: string): Promise<void> =>
  copyOnce('program', initializeByProgram, target)

/** The same for the PostgreSQL that comes with the service. */
export const copyEmbeddedDataDir = (target: string): Promise<void> =>
  copyOnce('embedded', initializeEmbedded, target)
