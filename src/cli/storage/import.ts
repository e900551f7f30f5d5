import { open } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { openSealer } from '../../app/installation.ts'
import { silentLog } from '../../lib/log.ts'
import { importInstallation } from '../../storage/archive/import.ts'
import { type GlobalOptions, note, type Shell } from '../shell.ts'
import { createTransferProgress, movedText } from './transfer-progress.ts'
import { type DatabaseWork, withDatabase } from './with-database.ts'

/** Reads an archive from a file or the standard input. */
export async function runImport(shell: Shell, file: string, options: GlobalOptions): Promise<void> {
  // Opened first, so that a wrong name does not make a database.
  const source: Readable =
    file === '-' ? shell.stdin : (await open(resolve(shell.cwd, file))).createReadStream()
  await withDatabase(shell, options, async (database) => {
    const { pool, signal } = database
    const { report, done } = createTransferProgress(shell)
    const moved = await importInstallation({
      pool,
      in: source,
      log: silentLog,
      onProgress: report,
      signal,
    }).finally(done)
    note(shell, `Imported ${movedText(moved)}.`)
    const warning = await masterKeyWarning(shell, database)
    if (warning !== undefined) note(shell, warning)
  })
}

async function masterKeyWarning(
  shell: Shell,
  { config, dataDir, db }: DatabaseWork,
): Promise<string | undefined> {
  try {
    await openSealer({ config, env: shell.env, log: silentLog, db, dataDir })
    return undefined
  } catch {
    const place =
      config.security.master_key === undefined
        ? join(dataDir, 'master.key')
        : 'security.master_key of the configuration'
    return `Before the service starts, put the master key of the old installation into ${place}: the imported secrets are sealed with it.`
  }
}
