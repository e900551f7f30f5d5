import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../src/lib/log.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import { migrateDatabase } from '../../src/storage/migrations/migrate.ts'
import { type Connection, type Db, openDatabase } from '../../src/storage/pg/database.ts'
import { embeddedBinaries } from './postgres.ts'
import { waitFor } from './wait-for.ts'

/** A migrated database on a server of its own that may be killed. */
export type KillableDatabase = {
  db: Db
  connection: Connection
  /** Kills the server and waits until it is back. */
  killDatabase(): Promise<void>
  stop(): Promise<void>
}

/** Whether Vitest runs this; otherwise it is a program of a campaign. */
const isTest = '__vitest_worker__' in globalThis

/**
 * Starts one. What it has acknowledged survives its death, though not that of the machine. An empty one is migrated by
 * the service, which may be an older version.
 */
export const startKillableDatabase = async ({
  isEmpty = false,
} = {}): Promise<KillableDatabase> => {
  const folder = await mkdtemp(join(tmpdir(), 'portolan-killable-'))
  // As root the database runs as another user, who must reach the directory.
  await chmod(folder, 0o711)
  const dataDir = join(folder, 'data')
  if (isTest && !isEmpty) {
    // This module needs the context of a test.
    const { copyEmbeddedDataDir } = await import('./initialized-data-dir.ts')
    await copyEmbeddedDataDir(dataDir)
  }
  const server = await startEmbeddedPostgres({
    dataDir,
    binaries: await embeddedBinaries(),
    log: silentLog,
    settings: { fsync: false },
  })
  const { connection } = server
  const { db, pool, stop } = openDatabase({ connection, log: silentLog })
  if (!isEmpty) await migrateDatabase(db, { log: silentLog })
  return {
    db,
    connection,
    killDatabase: async () => {
      const pid = server.pid()
      process.kill(pid, 'SIGKILL')
      await waitFor('the database is back', () => server.pid() !== pid, { timeoutMs: 120_000 })
      const answers = () =>
        pool.query('select 1').then(
          () => true,
          () => false,
        )
      await waitFor('the database answers', answers, { timeoutMs: 120_000 })
    },
    stop: async () => {
      await stop()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
