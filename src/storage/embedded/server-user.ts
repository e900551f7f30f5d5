// The user of the embedded server. Containers often run everything as root, which PostgreSQL refuses; the data directory
// belongs to another user then, and every folder above it must let that user through.

import { execFile } from 'node:child_process'
import { realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { EmbeddedPostgresError } from './errors.ts'

/** The unprivileged user that the server runs as when the service itself is root. */
export type ServerUser = { uid: number; gid: number; name: string }

const run = promisify(execFile)

const lookUp = async (name: string): Promise<ServerUser | undefined> => {
  try {
    // By `id`, because names may come from a directory service that /etc/passwd does not know.
    const [uid, gid] = await Promise.all(
      ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, name])).stdout)),
    )
    return uid === undefined || gid === undefined ? undefined : { uid, gid, name }
  } catch {
    return undefined
  }
}

/** `postgres` where it exists, else `nobody`: PostgreSQL refuses to run as root. */
export const findServerUser = async (): Promise<ServerUser> => {
  const user = (await lookUp('postgres')) ?? (await lookUp('nobody'))
  if (user) return user
  throw new EmbeddedPostgresError(
    'PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody to run it as.',
  )
}

/** The user that runs the server for `root`: the owner of an existing directory, else the default user; undefined is the current user. */
export const chooseServerUser = async (root: string): Promise<ServerUser | undefined> => {
  const self = process.getuid?.() ?? 0
  const owner = await stat(root).catch(() => undefined)
  if (self !== 0) {
    if (!owner || owner.uid === self) return undefined
    throw new EmbeddedPostgresError(
      `${root} belongs to the user with id ${owner.uid}; start Portolan as that user or as root.`,
    )
  }
  if (owner && owner.uid !== 0) {
    return { uid: owner.uid, gid: owner.gid, name: `with id ${owner.uid}` }
  }
  return findServerUser()
}

// The x bit of a directory decides whether it may be passed; supplementary groups are not
// considered, which only refuses more.
const mayEnter = async (directory: string, user: { uid: number; gid: number }) => {
  const { mode, uid, gid } = await stat(directory)
  if (uid === user.uid) return (mode & 0o100) !== 0
  if (gid === user.gid) return (mode & 0o010) !== 0
  return (mode & 0o001) !== 0
}

const existing = async (path: string): Promise<string> => {
  try {
    return await realpath(path)
  } catch (error) {
    const parent = dirname(path)
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || parent === path) throw error
    return existing(parent)
  }
}

/** The first directory on the way to and including `path` that the user may not enter, if any. */
export const closedDirectory = async (
  path: string,
  user: { uid: number; gid: number },
): Promise<string | undefined> => {
  const target = await existing(path)
  let current = '/'
  for (const part of ['', ...target.split('/').filter(Boolean)]) {
    current = join(current, part)
    if (!(await mayEnter(current, user))) return current
  }
  return undefined
}
