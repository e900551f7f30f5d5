// `portolan backup` and `portolan restore` of the embedded server. The database is copied while the service runs;
// a server of the operator has tools of its own, so that both commands refuse it.

import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../../app/config/schema.ts'
import { silentLog } from '../../lib/log.ts'
import {
  type BackupManifest,
  type CopyProgress,
  listBackups,
  pruneBackups,
  takeBaseBackup,
} from '../../storage/embedded/base-backup.ts'
import { connectionOf, layoutOf } from '../../storage/embedded/layout.ts'
import { restoreBackup } from '../../storage/embedded/restore.ts'
import { schemaVersion } from '../../storage/migrations/migrate.ts'
import { CliError, usageError } from '../cli-error.ts'
import { findDataDir, readConfig } from '../configuration.ts'
import { barText, bytesText, createProgressLine, leftText } from '../progress.ts'
import { type GlobalOptions, note, print, printJson, type Shell } from '../shell.ts'
import { withDatabase } from '../storage/with-database.ts'
import { columnsOf, formatRecord, formatTable } from '../table.ts'

type BackupOptions = GlobalOptions & {
  list?: boolean
  keep?: number
  command?: string
  json?: boolean
}

/** Makes a base backup, or lists those that are there. */
export async function runBackup(
  shell: Shell,
  directory: string | undefined,
  options: BackupOptions,
): Promise<void> {
  const config = readConfig(shell, options)
  const target = directoryOf(shell, config, directory)
  if (options.list) return showBackups(shell, await listBackups(target), options)
  await withDatabase(shell, options, async ({ dataDir, signal }) => {
    const line = createProgressLine(shell)
    const manifest = await takeBaseBackup({
      ...{ dataDir, directory: target, signal, now: new Date() },
      connection: connectionOf(layoutOf(dataDir)),
      schema_version: await schemaVersion(),
      onProgress: (progress) => line.show((seconds) => describe(progress, seconds)),
    }).finally(line.done)
    // Before older backups are deleted: when the command fails, they are still there.
    if (options.command !== undefined) await pass(target, manifest, options.command, signal)
    if (options.json) printJson(shell, manifest)
    else print(shell, formatRecord(fieldsOf(manifest)))
    if (options.keep !== undefined) {
      const { backups, segments } = await pruneBackups(target, options.keep)
      note(shell, `Deleted ${backups.length} older backups and ${segments} WAL segments.`)
    }
    if (config.database.embedded.backup.directory === undefined)
      note(
        shell,
        'Only this moment can be restored: WAL is not archived. Set database.embedded.backup.directory to restore any later one.',
      )
    note(shell, 'Keep the master key too, in another place.')
  })
}

type RestoreOptions = GlobalOptions & { at?: Date; backup?: string; yes?: boolean; json?: boolean }

/** Restores the database. */
export async function runRestore(
  shell: Shell,
  directory: string | undefined,
  options: RestoreOptions,
): Promise<void> {
  const config = readConfig(shell, options)
  const source = directoryOf(shell, config, directory)
  const dataDir = await findDataDir(shell, config)
  const moment = options.at ? options.at.toISOString() : 'the newest archived moment'
  if (!options.yes) {
    note(
      shell,
      `Nothing was changed. Add --yes to bring the database of ${dataDir} to ${moment}; its files of now are kept beside the new ones.`,
    )
    return
  }
  const { binaries, settings, backup } = config.database.embedded
  const interrupted = new AbortController()
  const interrupt = () => interrupted.abort(new DOMException('Interrupted.', 'AbortError'))
  // An interrupted restore puts the old files back (`restoreBackup`), so the first signal must not
  // end the process.
  process.once('SIGINT', interrupt)
  const restored = await restoreBackup({
    ...{ dataDir, binaries, settings, log: silentLog, signal: interrupted.signal },
    backup: { ...backup, directory: source },
    ...(options.at && { at: options.at }),
    ...(options.backup !== undefined && { name: options.backup }),
    onStep: (text) => note(shell, `${text.charAt(0).toUpperCase()}${text.slice(1)} …`),
  }).finally(() => process.off('SIGINT', interrupt))
  if (options.json) {
    printJson(shell, restored)
    return
  }
  const last = restored.last_transaction_time
  print(
    shell,
    `Restored from the base backup ${restored.backup.name}${last === null ? '' : `, up to the transaction of ${last}`}.`,
  )
  if (restored.before !== undefined)
    note(shell, `The files from before are in ${restored.before}. Delete them when all is well.`)
  note(
    shell,
    'Start the service: it continues from the restored block. Then run "portolan backfill" where blocks are missing, and expect notifications after the restored moment to be delivered again with the same ids.',
  )
}

function directoryOf(shell: Shell, { database }: Config, given: string | undefined): string {
  if (database.url !== undefined)
    throw new CliError(
      'The database is a server of yours (database.url). Back it up with its own tools, such as pg_basebackup, pgBackRest or WAL-G, or use "portolan export".',
    )
  const directory =
    given === undefined ? database.embedded.backup.directory : resolve(shell.cwd, given)
  if (directory !== undefined) return directory
  throw usageError('Name the folder of the backups, or set database.embedded.backup.directory.')
}

const describe = ({ bytes, totalBytes }: CopyProgress, seconds: number): string => {
  const speed = seconds > 0 ? bytes / seconds : 0
  const share = totalBytes > 0 ? bytes / totalBytes : 0
  return `${barText(share)}, ${bytesText(bytes)} of ${bytesText(totalBytes)}, ${bytesText(Math.floor(speed))}/s, ${leftText(totalBytes - bytes, speed)}`
}

const fieldsOf = ({ name, stop_time, bytes, files, schema_version }: BackupManifest) => ({
  backup: name,
  restorable_from: stop_time,
  size: `${bytesText(bytes)} in ${files.toLocaleString('en')} files`,
  schema_version,
})

function showBackups(shell: Shell, all: readonly BackupManifest[], { json }: BackupOptions): void {
  if (json) {
    printJson(shell, all)
    return
  }
  const rows = all.map((one) => [one.name, one.stop_time, bytesText(one.bytes), one.schema_version])
  print(
    shell,
    formatTable(['BACKUP', 'RESTORABLE FROM', 'SIZE', 'SCHEMA'], rows, columnsOf(shell.stdout)),
  )
}

/** Gives the backup to a command as a tar archive. */
async function pass(
  directory: string,
  { name }: BackupManifest,
  command: string,
  signal: AbortSignal,
): Promise<void> {
  const tar = spawn('tar', ['-C', `${directory}/base`, '-cf', '-', name], {
    stdio: ['ignore', 'pipe', 'inherit'],
    signal,
  })
  // By a shell, because the operator writes a pipeline here. The name of a backup is made of digits and a few letters by
  // `takeBaseBackup`, so that it cannot add a command.
  const shell = spawn('sh', ['-c', command.replaceAll('%n', name)], {
    stdio: ['pipe', 'inherit', 'inherit'],
    signal,
  })
  // Awaited below. The handler only keeps an early failure from being unhandled.
  const ended = Promise.all([endOf(tar), endOf(shell)])
  ended.catch(() => {})
  // A command that ends early breaks the pipe; its exit code is what counts.
  await pipeline(tar.stdout, shell.stdin).catch(() => {})
  const [packed, stored] = await ended
  if (packed !== 0 || stored !== 0)
    throw new CliError(
      `The backup ${name} is in ${directory}, but the command failed (${packed !== 0 ? `tar ${packed}` : stored}).`,
    )
}

const endOf = (child: ReturnType<typeof spawn>): Promise<number> =>
  new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code ?? 1))
  })
