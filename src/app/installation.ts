// An installation for commands, beside a running service or without one. An empty database is
// set up; one of an earlier version is refused, because services of that version may be using it.

import { join } from 'node:path'
import { checkMasterKey } from '../domain/access/credential-keys.ts'
import type { Installation } from '../domain/context.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { findNewestCredential } from '../storage/access/credentials.ts'
import { loadMasterKeys } from '../storage/access/master-key.ts'
import type { Sealer } from '../storage/access/seal.ts'
import { connectEmbedded } from '../storage/embedded/connect-embedded.ts'
import { readMigrations } from '../storage/migrations/files.ts'
import { migrateDatabase, pendingMigrations } from '../storage/migrations/migrate.ts'
import { type Database, openDatabase } from '../storage/pg/database.ts'
import { createChangePublisher } from '../storage/redis/changes.ts'
import { connectRedis } from '../storage/redis/redis.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { resolveSecret } from './config/secrets.ts'
import { openDataDir, openMasterSealer, openServer } from './data-directory.ts'

/** An installation cannot be worked on as it is; the message says what to do. */
export class InstallationError extends Error {
  override name = 'InstallationError'
}

/** Which installation to open. */
export type OpenOptions = {
  config: Config
  env: Env
  cwd: string
  log: Log
  signal?: AbortSignal
  /** How long to wait for the database of a service that is starting. */
  waitMs?: number
}

/** The database of an installation, beside a running service or without one. */
export type OpenedDatabase = Database & { dataDir: string; mode: 'embedded' | 'server' }

/** An installation that a command works on without the service. */
export type OpenedInstallation = Installation & { stop(): Promise<void> }

/** Opens the database as it is; an embedded server is started for the time being where none runs. */
export async function openInstallationDatabase(options: OpenOptions): Promise<OpenedDatabase> {
  const { config, env, cwd, log, signal, waitMs = 60_000 } = options
  const dataDir = await openDataDir(config, env, cwd)
  const embedded = config.database.url === undefined
  const server = embedded
    ? await connectEmbedded({ dataDir, log, signal, waitMs, ...config.database.embedded })
    : await openServer(config, { dataDir, env, log })
  // Commands may migrate, lock and copy, for which they need sessions of their own.
  const connection = 'direct' in server ? server.direct : server.connection
  const database = openDatabase({ connection, log, max: 2 })
  const stop = () => database.stop().finally(() => server.stop())
  return { ...database, dataDir, mode: embedded ? 'embedded' : 'server', stop }
}

/** Opens the database with its schema and the master key that belongs to it. */
export async function openInstallation(options: OpenOptions): Promise<OpenedInstallation> {
  const { config, env, log } = options
  const { db, dataDir, stop } = await openInstallationDatabase(options)
  try {
    await requireSchema(db, log)
    const sealer = await openSealer({ config, env, log, db, dataDir })
    const publishChange = publishOnce(config, { env, log })
    const tools = { clock: systemClock, ids: systemIds, sealer, log, stop }
    return { db, ...tools, ...(publishChange && { publishChange }) }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Publishes changes over a connection for each: a command makes one or none. */
function publishOnce(
  { redis: { url, key_prefix } }: Config,
  { env, log }: Pick<OpenOptions, 'env' | 'log'>,
): Installation['publishChange'] {
  if (url === undefined) return undefined
  return async (change) => {
    const options = { url: resolveSecret(url, { env, key: 'redis.url' }), key_prefix, log }
    const redis = await connectRedis(options)
    await createChangePublisher(redis, options)(change)
    await redis.stop()
  }
}

/** The sealer of what the database holds; a key is made for an empty one only. */
export async function openSealer(
  options: Pick<OpenOptions, 'config' | 'env' | 'log'> & Pick<OpenedDatabase, 'db' | 'dataDir'>,
): Promise<Sealer> {
  const { config, db, dataDir } = options
  // A key made now could not open what is there, and would hide that the right one is missing.
  if (config.security.master_key === undefined && (await findNewestCredential(db)))
    await loadMasterKeys({ file: join(dataDir, 'master.key') })
  const sealer = await openMasterSealer(config, options)
  await checkMasterKey({ db, sealer })
  return sealer
}

// An empty database is set up, so that an operator can begin with any command. One that services of
// an earlier version may be using is changed by nothing but the command that reports it.
async function requireSchema(db: Database['db'], log: Log): Promise<void> {
  const pending = await pendingMigrations(db)
  if (pending.length === 0) return
  if (pending.length === (await readMigrations()).length) {
    await migrateDatabase(db, { log })
    return
  }
  throw new InstallationError(
    `The database lacks ${pending.length} migration${pending.length === 1 ? '' : 's'} of this Portolan (${pending.join(', ')}). Run "portolan migrate", or start the service.`,
  )
}
