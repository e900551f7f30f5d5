import { join, resolve } from 'node:path'
import { closedDirectory, findServerUser } from './server-user.ts'

type Surroundings = {
  cwd?: string
  uid?: number | undefined
  env?: Record<string, string | undefined>
}

/** Where the service keeps its data unless told: `.data` here, or a place that a root service's database can reach. */
export const defaultDataDir = async ({
  cwd = process.cwd(),
  uid = process.getuid?.(),
  env = process.env,
}: Surroundings = {}): Promise<string> => {
  if (env.PORTOLAN_DATA_DIR) return resolve(cwd, env.PORTOLAN_DATA_DIR)
  const here = join(cwd, '.data')
  if (uid !== 0) return here
  const closed = await closedDirectory(cwd, await findServerUser())
  return closed === undefined ? here : '/var/lib/portolan'
}
