import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, lstat, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Binaries } from './binaries.ts'
import { EmbeddedPostgresError } from './errors.ts'
import { connectionOf, type Layout } from './layout.ts'
import { closedDirectory, type ServerUser } from './server-user.ts'

const run = promisify(execFile)

const syncDirectory = async (path: string): Promise<void> => {
  await using handle = await open(path)
  // After a power cut a directory whose entry was not written is missing.
  await handle.sync()
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants

const ensureDirectory = async (path: string, user: ServerUser | undefined): Promise<void> => {
  await mkdir(path, { recursive: true, mode: 0o700 })
  // By handle and never through a link: others may write to the parent, and we may be root.
  await using handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(() => undefined)
  const stats = await (handle?.stat() ?? lstat(path))
  // Another user may have made the directory first, below /tmp, to receive our connections.
  if (!handle || ![process.getuid?.(), user?.uid].includes(stats.uid)) {
    throw new EmbeddedPostgresError(
      `${path} already exists and belongs to the user with id ${stats.uid}, or is not a directory; remove it.`,
    )
  }
  if (user && stats.uid !== user.uid) await handle.chown(user.uid, user.gid)
  if ((stats.mode & 0o777) !== 0o700) await handle.chmod(0o700)
}

const removeLeftovers = async ({ root, staging }: Layout): Promise<void> => {
  for (const name of await readdir(root)) {
    const path = join(root, name)
    // What cannot be removed because it is being written is removed at a later start.
    if (path.startsWith(staging)) await rm(path, { recursive: true, force: true }).catch(() => {})
  }
}

/** Makes the server's directories, private to the user it runs as and reachable by that user. */
export const prepareDirectories = async (
  dataDir: string,
  layout: Layout,
  user: ServerUser | undefined,
): Promise<void> => {
  if (user) {
    const { mode } = await lstat(dataDir)
    // The service's own files stay private; the server's user only passes through.
    if ((mode & 0o011) !== 0o011) await chmod(dataDir, (mode & 0o7777) | 0o011)
    const closed = await closedDirectory(dataDir, user)
    if (closed) {
      throw new EmbeddedPostgresError(
        `PostgreSQL does not run as root but as the user ${user.name}, who cannot enter ${closed}. ` +
          `Choose a data directory elsewhere, such as /var/lib/portolan, or open that directory with "chmod o+x ${closed}".`,
      )
    }
  }
  await ensureDirectory(layout.root, user)
  await ensureDirectory(layout.socket, user)
  await removeLeftovers(layout)
}

/** The major version that made the data directory; undefined when there is none yet. */
export const readDataVersion = async (layout: Layout): Promise<number | undefined> => {
  const text = await readFile(join(layout.data, 'PG_VERSION'), 'utf8').catch(() => undefined)
  if (text !== undefined) return Number.parseInt(text, 10)
  const files = await readdir(layout.data).catch(() => [])
  if (files.length === 0) return undefined
  throw new EmbeddedPostgresError(
    `${layout.data} holds files but no PostgreSQL database; move them away or choose another data directory.`,
  )
}

/** Creates the database files; a crash at any moment leaves either nothing or all of them. */
export const initialize = async (
  layout: Layout,
  binaries: Binaries,
  user: ServerUser | undefined,
  { durable, signal }: { durable: boolean; signal: AbortSignal },
): Promise<void> => {
  // An initdb that outlived its service may still be writing, so no name is used twice.
  const staging = `${layout.staging}${randomBytes(4).toString('hex')}`
  const options = [
    ['-D', staging],
    ['-U', connectionOf(layout).user],
    ['--encoding=UTF8', '--locale=C', '--data-checksums'],
    // Trust on the socket, whose directory is private; host connections are rejected even if a port
    // were opened.
    ['--auth-local=trust', '--auth-host=reject', '--no-instructions'],
    durable ? [] : ['--no-sync'],
  ]
  try {
    await run(join(binaries.directory, 'initdb'), options.flat(), {
      ...(user && { uid: user.uid, gid: user.gid }),
      cwd: layout.root,
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      timeout: 120_000,
      signal,
    })
  } catch (error) {
    signal.throwIfAborted()
    const { stderr } = error as { stderr?: string }
    throw new EmbeddedPostgresError(
      `The database files could not be created in ${layout.root}: ${stderr?.trim() || error}`,
      { cause: error },
    )
  }
  // The rename is the moment of creation: before it there is no database, after it a complete one.
  await rename(staging, layout.data)
  await syncDirectory(dirname(layout.data))
}
