import { chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { ensureDataDir } from './data-dir.ts'
import { EmbeddedPostgresError } from './errors.ts'

/** Proof that this process alone uses a data directory. */
export type DataDirLock = { release(): Promise<void> }

const sqliteBusy = 5

// Node has no flock. An exclusive SQLite transaction is a kernel lock on the file: taken by one of
// many simultaneous starters, gone with the process however it ends, blind to reused process ids.
const tryLock = (path: string): DatabaseSync | undefined => {
  const handle = new DatabaseSync(path, { timeout: 0 })
  try {
    handle.exec('begin exclusive')
    return handle
  } catch (error) {
    handle.close()
    if ((error as { errcode?: number }).errcode === sqliteBusy) return undefined
    throw error
  }
}

// Two simultaneous attempts can block each other so that neither gets the lock: retry for a moment.
const minWaitMs = 500

/** How long the start of a service waits for the lock. */
export const startWaitMs = 5_000

const lockWithRetries = async (path: string, waitMs: number): Promise<DatabaseSync | undefined> => {
  const deadline = performance.now() + waitMs
  for (;;) {
    const handle = tryLock(path)
    if (handle || performance.now() >= deadline) return handle
    await delay(20 + Math.random() * 40)
  }
}

const readHolder = async (path: string): Promise<string> => {
  const holder = (await readFile(path, 'utf8').catch(() => '')).trim()
  return holder ? `Another Portolan (pid ${holder})` : 'Another Portolan'
}

/**
 * Takes the data directory for this process, or fails after `waitMs` with an error that names the holder. A start
 * waits longer than a command: a supervisor restarts at once, while the orphan of a killed launcher takes up to a
 * second to notice and to end.
 */
export const lockDataDir = async (dataDir: string, waitMs = minWaitMs): Promise<DataDirLock> => {
  const directory = await ensureDataDir(dataDir)
  const lockPath = join(directory, 'portolan.lock')
  const pidPath = join(directory, 'portolan.pid')
  // The lock file is separate from the process id and never read: closing any other descriptor of
  // a file drops this process's kernel locks on it.
  await writeFile(lockPath, '', { flag: 'wx', mode: 0o600 }).catch((error) => {
    if (error.code !== 'EEXIST') throw error
  })
  const handle = await lockWithRetries(lockPath, waitMs)
  if (!handle) {
    throw new EmbeddedPostgresError(`${await readHolder(pidPath)} is using ${directory}.`)
  }
  const owner = await stat(directory)
  await writeFile(`${pidPath}.new`, `${process.pid}\n`, { mode: 0o600 })
  await rename(`${pidPath}.new`, pidPath)
  if (process.getuid?.() === 0 && owner.uid !== 0) {
    // After a start with sudo the directory's owner must be able to start without it.
    await Promise.all([lockPath, pidPath].map((path) => chown(path, owner.uid, owner.gid)))
  }
  // The listener also keeps the handle reachable: collected as garbage, it would unlock.
  const unlock = () => {
    if (handle.isOpen) handle.close()
  }
  process.once('exit', unlock)
  return {
    release: async () => {
      if (!handle.isOpen) return
      process.off('exit', unlock)
      await rm(pidPath, { force: true })
      handle.close()
    },
  }
}
