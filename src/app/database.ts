import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { createNonceMemory, type NonceMemory } from '../storage/access/nonce-memory.ts'
import type { DataDirLock } from '../storage/embedded/lock.ts'
import { migrateDatabase } from '../storage/migrations/migrate.ts'
import { checkServerVersion, type Database, openDatabase } from '../storage/pg/database.ts'
import { ensurePartitions } from '../storage/pg/partitions.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { removeConnectionFile } from './connection-file.ts'
import { type DatabaseServer, openServer } from './data-directory.ts'
import type { Own } from './lifetime.ts'

/** The database of a running service. */
export type ServiceDatabase = Pick<Database, 'db' | 'pool' | 'shareOf'> & {
  server: DatabaseServer
  /** Connections of trackers, senders and the janitor, which requests cannot use up. */
  workersDb: Database['db']
  nonceMemory: NonceMemory
  /** From this time on no signed request is refused because of a crash or restore before the start. */
  trustedTime: number
}

/** Starts or reaches the database and brings its schema up to date. */
export async function openServiceDatabase(
  config: Config,
  tools: { dataDir: string; env: Env; log: Log; clock: Clock; lock: DataDirLock | undefined },
  own: Own,
): Promise<ServiceDatabase> {
  const { dataDir, log, clock } = tools
  const server = own(await openServer(config, tools))
  // A file that a killed service left behind would send scripts to a port on which nothing listens.
  await removeConnectionFile(dataDir)
  const { pool_size, worker_pool_size, statement_timeout_seconds } = config.database
  const connect = (max: number) =>
    openDatabase({
      connection: server.connection,
      log,
      max,
      statementTimeoutMs: statement_timeout_seconds * 1000,
    })
  const { db, pool, shareOf } = own(connect(pool_size))
  const workers = own(connect(worker_pool_size))
  await checkServerVersion(db)
  await migrateDatabase(db, { log })
  const nonceMemory = createNonceMemory(db)
  const untrustedMs = await nonceMemory.begin()
  const trustedTime = clock.now() + untrustedMs
  await ensurePartitions(db, new Date(clock.now()))
  return { server, db, pool, shareOf, workersDb: workers.db, nonceMemory, trustedTime }
}
