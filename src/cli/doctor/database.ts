// The checks of the database and of Redis. They change nothing: no directory is made and no migration is applied.

import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { resolveSecret } from '../../app/config/secrets.ts'
import {
  type OpenedDatabase,
  openInstallationDatabase,
  openSealer,
} from '../../app/installation.ts'
import { countKeyUses } from '../../domain/access/reseal.ts'
import { silentLog } from '../../lib/log.ts'
import { findBinaries, oldestMajor } from '../../storage/embedded/binaries.ts'
import { layoutOf } from '../../storage/embedded/layout.ts'
import { npmBinaries } from '../../storage/embedded/npm-binaries.ts'
import { chooseServerUser } from '../../storage/embedded/server-user.ts'
import { readMigrations } from '../../storage/migrations/files.ts'
import { schemaState, schemaVersion } from '../../storage/migrations/migrate.ts'
import { connectRedis } from '../../storage/redis/redis.ts'
import { type DoctorContext, type Finding, failure, ok, warning } from './finding.ts'
import { checkClock } from './machine.ts'

/** The database and what is in it. An embedded one that does not exist yet is not made. */
export async function* checkDatabase(context: DoctorContext): AsyncGenerator<Finding> {
  const { config, shell, dataDir } = context
  const embedded = config.database.url === undefined
  // A server is started for an existing directory only. Creating one would change the machine.
  const files = embedded && (await exists(join(layoutOf(dataDir).data, 'PG_VERSION')))
  if (embedded && !files) {
    yield await checkBinaries(context)
    return
  }
  const database = await openInstallationDatabase({
    config,
    env: shell.env,
    cwd: shell.cwd,
    log: silentLog,
    waitMs: 10_000,
  })
  try {
    yield* checkServer(context, database)
  } finally {
    await database.stop()
  }
}

// Finds the binaries as the first start would, with copies in a scratch folder: a check must leave no files.
async function checkBinaries({ config, dataDir }: DoctorContext): Promise<Finding> {
  const scratch = await mkdtemp(join(tmpdir(), 'portolan-doctor-'))
  try {
    const user = await chooseServerUser(layoutOf(dataDir).root)
    const { version, directory } = await findBinaries({
      explicit: config.database.embedded.binaries,
      user,
      npm: () => npmBinaries({ copyTo: scratch, user }),
    })
    const place = directory.startsWith(scratch) ? 'of the npm package' : `in ${directory}`
    return ok('database', `embedded, made at the first start by PostgreSQL ${version} ${place}`)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

async function* checkServer(
  { config, shell, dataDir }: DoctorContext,
  { db, mode }: OpenedDatabase,
): AsyncGenerator<Finding> {
  const { rows } = await sql<{ version: string; number: number }>`
    select current_setting('server_version') as version,
      current_setting('server_version_num')::int4 as number`.execute(db)
  const { version, number } = rows[0] as { version: string; number: number }
  if (number < oldestMajor * 10_000) {
    yield failure(
      'database',
      `PostgreSQL ${version} is too old.`,
      `Use PostgreSQL ${oldestMajor} or newer.`,
    )
    return
  }
  yield ok('database', `${mode === 'embedded' ? 'embedded ' : ''}PostgreSQL ${version}`)
  // Pending migrations are a warning, not a failure: the next start applies them.
  const { pending, newer } = await schemaState(db)
  const all = (await readMigrations()).length
  if (newer.length > 0)
    yield ok('schema', `${newer.at(-1)}, of a newer version that this one can use`)
  else if (pending.length === 0) yield ok('schema', await schemaVersion())
  else if (pending.length === all) {
    yield ok('schema', 'none yet, made at the first start')
    return
  } else {
    const fix = 'Run "portolan migrate", or start the service, which does it.'
    yield warning('schema', `lacks ${pending.join(', ')}`, fix)
  }
  // The wrong master key is the costliest mistake: without it every stored secret is lost.
  yield await openSealer({ config, env: shell.env, log: silentLog, db, dataDir }).then(
    async (sealer) => {
      // Before a migration tables may be missing.
      const uses = pending.length === 0 ? await countKeyUses(db) : []
      const left = uses.filter(({ key_id }) => key_id !== sealer.key_id)
      if (left.length === 0) return ok('master key', `${sealer.key_id} opens the stored secrets`)
      const count = left.reduce((sum, use) => sum + use.count, 0)
      const found = `${count} values are sealed with another key than ${sealer.key_id}`
      return warning('master key', found, 'Run "portolan master-key rotate".')
    },
    (error: Error) =>
      failure('master key', error.message, 'Restore the key file, or set security.master_key.'),
  )
  yield await checkClock(db, config.security.nonce_window_seconds)
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

/** Whether Redis answers, where one is configured. */
export async function* checkRedis({ config, shell }: DoctorContext): AsyncGenerator<Finding> {
  if (config.redis.url === undefined) return
  const url = resolveSecret(config.redis.url, { env: shell.env, key: 'redis.url' })
  // The connection retries and only logs its errors, so the last one is taken from the log.
  let reason = 'no answer within 3 s'
  const keep = (fields: object) => {
    if ('error' in fields) reason = (fields.error as Error).message
  }
  const redis = await connectRedis({
    url,
    log: { ...silentLog, debug: keep, warn: keep },
    command_timeout_ms: 3_000,
    connect_wait_ms: 3_000,
  })
  try {
    if (!redis.ready()) throw new Error(reason)
    const info = String(await redis.command('INFO', 'server'))
    const version = /^(?:valkey|redis)_version:(\S+)/m.exec(info)?.[1]
    yield ok('redis', version === undefined ? 'answers' : `version ${version}`)
  } catch (error) {
    yield failure(
      'redis',
      `Redis does not answer: ${(error as Error).message}.`,
      'Start it, or fix redis.url. Without Redis each process admits its share of the limits.',
    )
  } finally {
    await redis.stop()
  }
}
