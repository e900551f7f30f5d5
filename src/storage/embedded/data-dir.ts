import { mkdir, realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { closedDirectory, findServerUser } from './server-user.ts'

type Surroundings = {
  cwd?: string
  uid?: number | undefined
  env?: Record<string, string | undefined>
}

/** The default data directory: `.data` here, or a place that a root service's database can reach. */
export const defaultDataDir = async ({
  cwd = process.cwd(),
  uid = process.getuid?.(),
  env = process.env,
}: Surroundings = {}): Promise<string> => {
  if (env.PORTOLAN_DATA_DIR) return resolve(cwd, env.PORTOLAN_DATA_DIR)
  const here = join(cwd, '.data')
  if (uid !== 0) return here
  // PostgreSQL refuses to run as root, so its user must be able to enter the directory.
  const closed = await closedDirectory(cwd, await findServerUser())
  return closed === undefined ? here : '/var/lib/portolan'
}

/** Makes the data directory, private, if it is not there; gives its real path. */
export const ensureDataDir = async (dataDir: string): Promise<string> => {
  const path = resolve(dataDir)
  // Only the directory itself is private: a root service's database must pass the others.
  await mkdir(dirname(path), { recursive: true }).catch((error) => {
    // A file in the way of the parents is reported for the parent, as if it were in order there.
    throw Object.assign(error, { path, ...(error.code === 'EEXIST' && { code: 'ENOTDIR' }) })
  })
  await mkdir(path, { mode: 0o700 }).catch((error) => {
    if (error.code !== 'EEXIST') throw error
  })
  return realpath(path)
}
