import { readConnectionFile } from './call/target.ts'
import { CliError } from './cli-error.ts'
import type { GlobalOptions, Shell } from './shell.ts'

/** The address of the operator's routes of the service that runs on the data directory. */
export async function findAdminUrl(shell: Shell, options: GlobalOptions): Promise<string> {
  const { admin_url } = await readConnectionFile(shell, options)
  if (admin_url !== undefined) return admin_url
  throw new CliError('The state of the service is not served: server.admin_listen is "off".')
}
