// Opens the database of a running service. Requests and workers have a pool each, so that neither can use up the
// connections of the other. The schema is brought up to date before anything reads it.

import { sql } from 'kysely'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Tracing } from '../lib/tracing.ts'
import { createNonceMemory, type NonceMemory } from '../storage/access/nonce-memory.ts'
import type { DataDirLock } from '../storage/embedded/lock.ts'
import { migrateDatabase } from '../storage/migrations/migrate.ts'
import { checkServerVersion, type Database, openDatabase } from '../storage/pg/database.ts'
import { ensurePartitions } from '../storage/pg/partitions.ts'
import { openReplicas, type Replicas } from '../storage/pg/replicas.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { resolveSecret } from './config/secrets.ts'
import { removeConnectionFile } from './connection-file.ts'
import { type DatabaseServer, openServer } from './data-directory.ts'
import type { Own } from './lifetime.ts'

/** The database of a running service. */
export type ServiceDatabase = Pick<Database, 'db' | 'pool' | 'shareOf'> & {
  server: DatabaseServer
  /** Connections of trackers, senders and the janitor, which requests cannot use up. */
  workersDb: Database['db']
  workersPool: Database['pool']
  nonceMemory: NonceMemory
  replicas?: Replicas
  /** From this time on no signed request is refused because of a crash or restore before the start. */
  trustedTime: number
}

/** Brings the schema up to date over a session of its own: the lock of migrations belongs to a session. */
async function migrateDirectly(
  db: Database['db'],
  { connection, direct }: DatabaseServer,
  options: { log: Log; signal: AbortSignal | undefined },
): Promise<void> {
  if (!connection.isPooled) return void (await migrateDatabase(db, options))
  const database = openDatabase({ connection: direct, log: options.log, max: 1 })
  try {
    await migrateDatabase(database.db, options)
  } finally {
    await database.stop()
  }
}

/** Behind a pooler a statement outside of a transaction has the time limit of the role. */
async function checkTimeout(db: Database['db'], log: Log): Promise<void> {
  const { rows } = await sql<{ statement_timeout: string }>`show statement_timeout`.execute(db)
  if (rows[0]?.statement_timeout === '0')
    log.warn(
      {},
      'the role of database.url has no statement_timeout, and a pooler does not pass ours on: run "alter role … set statement_timeout = \'30s\'"',
    )
}

/** Starts or reaches the database and brings its schema up to date. */
export async function openServiceDatabase(
  config: Config,
  tools: {
    dataDir: string
    env: Env
    log: Log
    clock: Clock
    lock: DataDirLock | undefined
    /** The server that a supervisor has opened, and stops. */
    given?: Pick<DatabaseServer, 'mode' | 'connection' | 'direct'> | undefined
    /** The server that was begun before, and is stopped by the one that began it. */
    begun?: Promise<DatabaseServer> | undefined
    tracing?: Tracing | undefined
    /** Ends the wait for the migration of another process. */
    signal?: AbortSignal | undefined
  },
  own: Own,
): Promise<ServiceDatabase> {
  const { dataDir, log, clock, given, begun, tracing, signal } = tools
  const opened = given ?? (await begun)
  const server = opened ? { ...opened, stop: async () => {} } : own(await openServer(config, tools))
  // A file that a killed service left behind would send scripts to a port on which nothing listens.
  if (!given) await removeConnectionFile(dataDir)
  const { pool_size, worker_pool_size, statement_timeout_seconds } = config.database
  const connect = (max: number) =>
    openDatabase({
      connection: server.connection,
      log,
      max,
      tracing,
      statementTimeoutMs: statement_timeout_seconds * 1000,
    })
  // Two pools: requests under load must not take the connections of trackers and senders.
  const { db, pool, shareOf } = own(connect(pool_size))
  const workers = own(connect(worker_pool_size))
  await checkServerVersion(db)
  await migrateDirectly(db, server, { log, signal })
  if (server.connection.isPooled && statement_timeout_seconds > 0) await checkTimeout(db, log)
  const replicas =
    config.database.replica_urls.length > 0
      ? own(
          openReplicas({
            ...{ primary: db, clock, log, max: pool_size },
            statementTimeoutMs: statement_timeout_seconds * 1000,
            connections: config.database.replica_urls.map((url, index) => ({
              connectionString: resolveSecret(url, {
                env: tools.env,
                key: `database.replica_urls[${index}]`,
              }),
            })),
          }),
        )
      : undefined
  // Before requests are accepted: the answer of a nonce depends on what the memory is worth.
  const nonceMemory = createNonceMemory(db)
  const untrustedMs = await nonceMemory.begin()
  const trustedTime = clock.now() + untrustedMs
  await ensurePartitions(db, new Date(clock.now()))
  return {
    ...{ server, db, pool, shareOf, workersDb: workers.db, workersPool: workers.pool },
    ...{ nonceMemory, trustedTime },
    ...(replicas && { replicas }),
  }
}
