import { mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServerUser } from './server-user.ts'
import type { Settings } from './settings.ts'

/** Where backups of the embedded server go, and how its log of changes (WAL) gets there. */
export type BackupSettings = {
  directory?: string | undefined
  archive_command?: string | undefined
  restore_command?: string | undefined
  archive_timeout_seconds?: number | undefined
}

/** The folder of archived WAL segments below a backup directory. */
export const walFolder = (directory: string): string => join(directory, 'wal')

// For a command line of the server: paths of operators may contain blanks and quotes.
const shellQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/**
 * The settings that archive WAL: with a command of the operator, or into the directory. A segment that is there already
 * with the same content is done: the server repeats a command whose result it did not record.
 */
export function archiveSettings(backup: BackupSettings | undefined): Settings {
  const { directory, archive_command, archive_timeout_seconds = 60 } = backup ?? {}
  const command = archive_command ?? (directory === undefined ? undefined : copyInto(directory))
  if (command === undefined) return {}
  return {
    archive_mode: true,
    archive_command: command,
    archive_timeout: archive_timeout_seconds,
    wal_level: 'replica',
  }
}

const copyInto = (directory: string): string => {
  const folder = walFolder(directory)
  const [final, draft] = [shellQuote(join(folder, '%f')), shellQuote(join(folder, '.%f.partial'))]
  // Copied under another name and renamed: a crash leaves no segment that is cut off. `test`
  // refuses to overwrite another content.
  return `cmp -s "%p" ${final} || { test ! -f ${final} && cp "%p" ${draft} && mv ${draft} ${final}; }`
}

/** The command that fetches a WAL segment in a restore; undefined where there is no archive. */
export function restoreCommandOf(backup: BackupSettings): string | undefined {
  if (backup.restore_command !== undefined) return backup.restore_command
  if (backup.directory === undefined) return undefined
  return `cp ${shellQuote(join(walFolder(backup.directory), '%f'))} "%p"`
}

/** Makes the folder of WAL segments, which the user of the server writes to. */
export async function prepareArchive(
  backup: BackupSettings | undefined,
  user: ServerUser | undefined,
): Promise<void> {
  if (backup?.directory === undefined || backup.archive_command !== undefined) return
  const folder = walFolder(backup.directory)
  await mkdir(folder, { recursive: true, mode: 0o711 })
  if (!user) return
  // By handle, so that a link laid in its place is not followed.
  await using handle = await open(folder)
  await handle.chown(user.uid, user.gid)
}
