import { randomBytes } from 'node:crypto'
import { chmod, chown, copyFile, cp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import type { Log } from '../../lib/log.ts'
import { type BackupSettings, restoreCommandOf } from './archive.ts'
import { type BackupManifest, backupData, listBackups } from './base-backup.ts'
import { ensureDataDir } from './data-dir.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { EmbeddedPostgresError } from './errors.ts'
import { prepareDirectories } from './initialize.ts'
import { connectionOf, type Layout, layoutOf } from './layout.ts'
import { lockDataDir } from './lock.ts'
import { findPostmaster } from './postmaster.ts'
import { chooseServerUser, type ServerUser } from './server-user.ts'
import type { Settings } from './settings.ts'

/** What to restore, and where. */
export type RestoreOptions = {
  dataDir: string
  backup: BackupSettings & { directory: string }
  binaries?: string | undefined
  settings?: Settings | undefined
  /** The time to restore to; everything that is archived when absent. */
  at?: Date | undefined
  /** A base backup other than the newest that fits. */
  name?: string | undefined
  log: Log
  signal: AbortSignal
  /** How long the replay may take. */
  timeoutMs?: number
  onStep?(text: string): void
}

/** What came of a restore. */
export type Restored = {
  backup: BackupManifest
  /** When the last transaction that was replayed had committed; null where none was. */
  last_transaction_time: string | null
  /** Where the files from before are; undefined where there were none. */
  before: string | undefined
}

/**
 * Puts a base backup in the place of the database files and replays WAL up to a time. The service must not run. The
 * files from before are kept beside the new ones, and are put back when the restore fails.
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { backup: archive, onStep = () => {} } = options
  const dataDir = await ensureDataDir(options.dataDir)
  const chosen = await chooseBackup(archive.directory, options)
  const lock = await lockDataDir(dataDir)
  try {
    const layout = layoutOf(dataDir)
    // A running server would overwrite the files that are put in place.
    if (await findPostmaster(layout.data))
      throw new EmbeddedPostgresError(
        'The database server still runs. Stop the service first, with SIGTERM and not SIGKILL.',
      )
    const user = await chooseServerUser(layout.root)
    await prepareDirectories(dataDir, layout, user)
    const staging = `${layout.staging}${randomBytes(4).toString('hex')}`
    onStep(`copying the base backup ${chosen.name}`)
    await copyOwned(backupData(archive.directory, chosen), staging, user)
    // Renamed, not deleted: a failed restore puts them back.
    const before = await setAside(layout)
    await rename(staging, layout.data)
    try {
      // What was not archived yet is still there when only the data was damaged.
      if (before !== undefined) await keepNewWal(before, layout, user)
      await writeSignal(layout, user)
      onStep('replaying the archived WAL')
      const last_transaction_time = await replay({ ...options, dataDir }, layout, lock)
      return { backup: chosen, last_transaction_time, before }
    } catch (error) {
      await rm(layout.data, { recursive: true, force: true })
      if (before !== undefined) await rename(before, layout.data)
      throw failureOf(error, options)
    }
  } finally {
    await lock.release()
  }
}

/** The newest base backup that ended before the time. */
async function chooseBackup(
  directory: string,
  { at, name }: Pick<RestoreOptions, 'at' | 'name'>,
): Promise<BackupManifest> {
  const all = await listBackups(directory)
  if (all.length === 0)
    throw new EmbeddedPostgresError(
      `There is no base backup in ${directory}. "portolan backup" makes one.`,
    )
  const fits = all.filter(
    (one) =>
      (name === undefined || one.name === name) &&
      (at === undefined || Date.parse(one.stop_time) <= at.getTime()),
  )
  const chosen = fits.at(-1)
  if (chosen) return chosen
  const known = all.map((one) => `${one.name} (from ${one.stop_time} on)`).join(', ')
  throw new EmbeddedPostgresError(
    name === undefined
      ? `No base backup is from before ${at!.toISOString()}. There are: ${known}.`
      : `There is no base backup "${name}" for that time. There are: ${known}.`,
  )
}

async function copyOwned(from: string, to: string, user: ServerUser | undefined): Promise<void> {
  await cp(from, to, { recursive: true, errorOnExist: true, force: false })
  const entries = await readdir(to, { recursive: true, withFileTypes: true })
  for (const path of [to, ...entries.map((entry) => join(entry.parentPath, entry.name))])
    if (user) await chown(path, user.uid, user.gid)
  await chmod(to, 0o700)
}

async function setAside({ data, root }: Layout): Promise<string | undefined> {
  const files = await readdir(data).catch(() => [])
  if (files.length === 0) {
    await rm(data, { recursive: true, force: true })
    return undefined
  }
  // With milliseconds: a second restore may follow at once.
  const stamp = new Date().toISOString().replaceAll(/[-:.]/g, '')
  const before = join(root, `data-before-restore-${stamp}`)
  await rename(data, before)
  return before
}

async function keepNewWal(
  before: string,
  { data }: Layout,
  user: ServerUser | undefined,
): Promise<void> {
  const target = join(data, 'pg_wal')
  // Segments that the backup has stay as they are.
  const known = new Set(await readdir(target))
  for (const file of await readdir(join(before, 'pg_wal')).catch(() => [])) {
    if (known.has(file) || !/^[0-9A-F]{24}$/.test(file)) continue
    await copyFile(join(before, 'pg_wal', file), join(target, file))
    if (user) await chown(join(target, file), user.uid, user.gid)
  }
}

async function writeSignal({ data }: Layout, user: ServerUser | undefined): Promise<void> {
  const path = join(data, 'recovery.signal')
  await writeFile(path, '', { mode: 0o600 })
  if (user) await chown(path, user.uid, user.gid)
}

/** Starts the server until it has replayed what it should, and stops it. */
async function replay(
  options: RestoreOptions,
  layout: Layout,
  lock: Awaited<ReturnType<typeof lockDataDir>>,
): Promise<string | null> {
  const { backup, at, log, signal, settings = {}, binaries, timeoutMs = 24 * 3_600_000 } = options
  const restore_command = restoreCommandOf(backup)
  if (restore_command === undefined)
    throw new EmbeddedPostgresError(
      'There is no archive to restore from: set database.embedded.backup.',
    )
  const server = await startEmbeddedPostgres({
    ...{ dataDir: options.dataDir, log, signal, lock, binaries, backup, startTimeoutMs: timeoutMs },
    settings: {
      ...settings,
      // Not ready before the replay has ended: a replay that fails then is a start that fails.
      hot_standby: false,
      restore_command,
      recovery_target_timeline: 'latest',
      ...(at && { recovery_target_time: timeOf(at), recovery_target_action: 'promote' }),
    },
  })
  try {
    return await readLastTransaction(layout)
  } finally {
    await server.stop()
  }
}

async function readLastTransaction(layout: Layout): Promise<string | null> {
  const client = new pg.Client({ ...connectionOf(layout), connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ time: Date | null }>(
      'select pg_last_xact_replay_timestamp() as time',
    )
    // Everything is on disk before the server is stopped, so that the next start replays nothing.
    await client.query('checkpoint')
    return rows[0]?.time?.toISOString() ?? null
  } finally {
    await client.end().catch(() => {})
  }
}

/** Written without a name of a zone: those are not loaded yet when the server reads its settings. */
const timeOf = (at: Date): string => at.toISOString().replace('T', ' ').replace('Z', '+00')

function failureOf(error: unknown, { at }: Pick<RestoreOptions, 'at'>): unknown {
  const text = error instanceof Error ? error.message : ''
  return /recovery ended before configured recovery target/.test(text)
    ? new EmbeddedPostgresError(
        `The archive ends before ${at?.toISOString()}, so nothing was changed. Choose an earlier time, or leave out --at to restore everything that is archived.`,
        { cause: error },
      )
    : error
}
