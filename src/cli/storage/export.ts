import { createWriteStream } from 'node:fs'
import { access, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { exportInstallation } from '../../storage/archive/export.ts'
import { CliError, usageError } from '../cli-error.ts'
import { type GlobalOptions, note, type Shell } from '../shell.ts'
import { createTransferProgress, movedText } from './transfer-progress.ts'
import { type DatabaseWork, withDatabase } from './with-database.ts'

type Options = GlobalOptions & { force?: boolean }

/** Writes the installation into a file or to the standard output. */
export async function runExport(shell: Shell, file: string, options: Options): Promise<void> {
  if (file === '-' && shell.stdout.isTTY)
    throw usageError('An archive is not for a terminal; send it to a file or a program.')
  const path = resolve(shell.cwd, file)
  if (file !== '-' && !options.force && (await exists(path)))
    throw new CliError(`${path} already exists; choose another name, or use --force to overwrite.`)
  await withDatabase(shell, options, async (database) => {
    const moved = await (file === '-'
      ? write(shell, database, shell.stdout)
      : writeFile(shell, database, path))
    note(shell, `Exported ${movedText(moved)}.`)
    note(shell, `Keep the master key too, in another place: ${masterKeyPlace(database)}`)
  })
}

// Complete or absent: half an archive must not be taken for a backup.
async function writeFile(shell: Shell, database: DatabaseWork, path: string) {
  const draft = `${path}.partial`
  try {
    const out = createWriteStream(draft, { mode: 0o600, flush: true })
    const moved = await write(shell, database, out)
    await rename(draft, path)
    return moved
  } finally {
    await rm(draft, { force: true })
  }
}

async function write(shell: Shell, { pool, signal }: DatabaseWork, out: NodeJS.WritableStream) {
  const { report, done } = createTransferProgress(shell)
  try {
    return await exportInstallation({ pool, out: out as never, onProgress: report, signal })
  } finally {
    done()
  }
}

const masterKeyPlace = ({ config, dataDir }: DatabaseWork): string =>
  config.security.master_key === undefined
    ? join(dataDir, 'master.key')
    : 'security.master_key of the configuration'

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
