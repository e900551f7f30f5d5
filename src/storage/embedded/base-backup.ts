import { constants } from 'node:fs'
import {
  copyFile,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { EmbeddedPostgresError } from './errors.ts'
import { type EmbeddedConnection, type Layout, layoutOf } from './layout.ts'

/** What is known of a base backup: its file `backup.json`. */
export type BackupManifest = {
  format: 1
  name: string
  postgres_version: number
  system_identifier: string
  schema_version: string
  start_time: string
  /** The earliest time that it can be restored to. */
  stop_time: string
  /** The first and the last WAL segment that it needs; both are in it. */
  first_wal: string
  last_wal: string
  files: number
  bytes: number
}

/** How far a copy is. */
export type CopyProgress = { bytes: number; totalBytes: number; files: number }

const manifestName = 'backup.json'
const dataName = 'data'
// What the server makes anew at its start, as its documentation of base backups lists it.
const emptied = [
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
]
const emptyFolders = new Set([...emptied, 'pg_replslot', 'pg_wal'])
const leftOut = /^(?:postmaster\.(?:pid|opts)|pg_internal\.init.*|pgsql_tmp.*|current_logfiles)$/
const control = join('global', 'pg_control')
const segment = /^[0-9A-F]{24}$/

/**
 * Copies the files of a running server together with the WAL that makes them consistent. The copy is complete or
 * absent: it is written under another name and renamed at the end.
 */
export async function takeBaseBackup(options: {
  connection: EmbeddedConnection
  dataDir: string
  /** The folder that gets a folder for this backup. */
  directory: string
  schema_version: string
  now: Date
  signal: AbortSignal
  onProgress(progress: CopyProgress): void
}): Promise<BackupManifest> {
  const { connection, directory, now, signal } = options
  const layout = layoutOf(options.dataDir)
  // A name that sorts by time and is valid on every file system.
  const name = now.toISOString().replaceAll(/[-:]|\.\d+/g, '')
  const base = join(directory, 'base')
  const draft = join(base, `.${name}.partial`)
  await mkdir(draft, { recursive: true, mode: 0o700 })
  const client = new pg.Client({ ...connection, application_name: 'portolan backup' })
  client.on('error', () => {})
  try {
    await client.connect()
    // Keeps the WAL that the copy needs until this session ends.
    await client.query('select pg_create_physical_replication_slot($1, true, true)', [
      `portolan_backup_${process.pid}`,
    ])
    const copied = await copyServer(client, layout, { ...options, draft })
    const { rows } = await client.query(
      `select system_identifier::text, current_setting('server_version_num')::int / 10000 as version
       from pg_control_system()`,
    )
    const manifest: BackupManifest = {
      ...{ format: 1, name, schema_version: options.schema_version },
      ...{ postgres_version: rows[0].version, system_identifier: rows[0].system_identifier },
      ...copied,
    }
    signal.throwIfAborted()
    await writeDurably(join(draft, manifestName), `${JSON.stringify(manifest, null, 2)}\n`)
    await rename(draft, join(base, name))
    return manifest
  } finally {
    // Ends the session and with it the slot. The draft is gone after a success, because it was
    // renamed.
    await client.end().catch(() => {})
    await rm(draft, { recursive: true, force: true })
  }
}

type Copied = Pick<
  BackupManifest,
  'start_time' | 'stop_time' | 'first_wal' | 'last_wal' | 'files' | 'bytes'
>

async function copyServer(
  client: pg.Client,
  layout: Layout,
  {
    draft,
    signal,
    onProgress,
  }: {
    draft: string
    signal: AbortSignal
    onProgress(progress: CopyProgress): void
  },
): Promise<Copied> {
  const target = join(draft, dataName)
  // `true` asks for an immediate checkpoint: the default would spread it over minutes.
  const started = await client.query(
    `select pg_walfile_name(lsn) as wal, clock_timestamp() as time from pg_backup_start('portolan', true) lsn`,
  )
  const files = await listFiles(layout.data)
  const totalBytes = files.reduce((sum, { size }) => sum + size, 0)
  let bytes = 0
  await mkdir(target, { recursive: true, mode: 0o700 })
  for (const folder of await listFolders(layout.data))
    await mkdir(join(target, folder), { recursive: true, mode: 0o700 })
  // The control file last: it must not be newer than what it describes is old.
  const ordered = files.toSorted((a, b) => Number(a.path === control) - Number(b.path === control))
  for (const [index, { path, size }] of ordered.entries()) {
    signal.throwIfAborted()
    await copyDurably(join(layout.data, path), join(target, path))
    bytes += size
    onProgress({ bytes, totalBytes, files: index + 1 })
  }
  // The WAL is copied below: an archive that is slow or broken must not delay a backup.
  const stopped = await client.query(
    `select labelfile, spcmapfile, pg_walfile_name(lsn) as wal, clock_timestamp() as time
     from pg_backup_stop(false)`,
  )
  const { labelfile, spcmapfile } = stopped.rows[0]
  if (spcmapfile.trim() !== '')
    throw new EmbeddedPostgresError(
      'The database uses tablespaces, which a backup does not contain.',
    )
  await writeDurably(join(target, 'backup_label'), labelfile)
  const [first_wal, last_wal] = [started.rows[0].wal as string, stopped.rows[0].wal as string]
  await mkdir(join(target, 'pg_wal', 'archive_status'), { recursive: true, mode: 0o700 })
  // The first eight digits are the timeline.
  for (const file of (await readdir(join(layout.data, 'pg_wal'))).filter((one) =>
    segment.test(one),
  ))
    if (file.slice(8) >= first_wal.slice(8) && file.slice(8) <= last_wal.slice(8))
      await copyDurably(join(layout.data, 'pg_wal', file), join(target, 'pg_wal', file))
  return {
    ...{
      start_time: started.rows[0].time.toISOString(),
      stop_time: stopped.rows[0].time.toISOString(),
    },
    ...{ first_wal, last_wal, files: files.length, bytes },
  }
}

/** The files of a data directory that a backup has. */
async function listFiles(root: string): Promise<{ path: string; size: number }[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const files: { path: string; size: number }[] = []
  for (const entry of entries) {
    if (!entry.isFile() || leftOut.test(entry.name)) continue
    const path = join(entry.parentPath, entry.name).slice(root.length + 1)
    if (emptyFolders.has(path.split('/')[0]!)) continue
    // A file may be dropped meanwhile; the replay of WAL drops it too.
    const found = await stat(join(root, path)).catch(() => undefined)
    if (found) files.push({ path, size: found.size })
  }
  return files
}

/** The folders of a data directory, those without content included. */
async function listFolders(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isDirectory() && !leftOut.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .filter((path) => {
      const [top, ...rest] = path.split('/')
      return rest.length === 0 || !emptyFolders.has(top!)
    })
}

async function copyDurably(from: string, to: string): Promise<void> {
  try {
    // A clone where the file system can, which takes no space and no time.
    await copyFile(from, to, constants.COPYFILE_FICLONE)
  } catch (error) {
    // Dropped since it was listed; the replay of WAL drops it too.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  await using handle = await open(to, 'r+')
  await handle.chmod(0o600)
  await handle.sync()
}

async function writeDurably(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600, flush: true })
}

/** The complete base backups of a directory, oldest first. */
export async function listBackups(directory: string): Promise<BackupManifest[]> {
  const base = join(directory, 'base')
  const names = await readdir(base).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const all: BackupManifest[] = []
  for (const name of names.filter((one) => !one.startsWith('.')).sort()) {
    // Without its manifest a folder is not a complete backup.
    const text = await readFile(join(base, name, manifestName), 'utf8').catch(() => undefined)
    if (text !== undefined) all.push(JSON.parse(text) as BackupManifest)
  }
  return all
}

/** The data files of a base backup. */
export const backupData = (directory: string, { name }: Pick<BackupManifest, 'name'>): string =>
  join(directory, 'base', name, dataName)

/** Deletes all but the newest base backups, and the WAL that none of those needs. Says what it deleted. */
export async function pruneBackups(
  directory: string,
  keep: number,
): Promise<{ backups: string[]; segments: number }> {
  const all = await listBackups(directory)
  const old = all.slice(0, Math.max(0, all.length - keep))
  const [oldestKept] = all.slice(old.length)
  for (const { name } of old)
    await rm(join(directory, 'base', name), { recursive: true, force: true })
  let segments = 0
  const wal = join(directory, 'wal')
  for (const file of oldestKept ? await readdir(wal).catch(() => []) : []) {
    // Histories of timelines are small, and needed for ever.
    const isOld = /^[0-9A-F]{24}/.test(file) && file.slice(8, 24) < oldestKept!.first_wal.slice(8)
    if (!isOld) continue
    await rm(join(wal, file), { force: true })
    segments++
  }
  return { backups: old.map(({ name }) => name), segments }
}
