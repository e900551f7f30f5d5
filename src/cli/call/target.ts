import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Pair } from '../../app/bootstrap.ts'
import type { ConnectionFile } from '../../app/connection-file.ts'
import { CliError, usageError } from '../cli-error.ts'
import type { GlobalOptions, Shell } from '../shell.ts'

/** Where a call goes, and what signs it. */
export type CallTarget = Pair & { base_url: string }

/** The options that choose a target. */
export type TargetOptions = GlobalOptions & {
  url?: string
  key?: string
  secret?: string
  as?: 'admin' | 'member'
}

/** Chooses by options, then by the environment, then by the connection file of the data directory. */
export async function chooseTarget(
  shell: Shell,
  options: TargetOptions,
  service: string,
): Promise<CallTarget> {
  const { env } = shell
  const base_url = options.url ?? (env.PORTOLAN_BASE_URL || undefined)
  const pair = givenPair(options, env)
  if (base_url !== undefined && pair) return { base_url, ...pair }
  // The keys of a local service must not be sent to an address that may belong to another party.
  if (base_url !== undefined)
    throw usageError(
      'With --url, give the key too: --key and --secret, or PORTOLAN_API_KEY and PORTOLAN_API_SECRET.',
    )
  const file = await readConnectionFile(shell, options)
  // `--as` asks for a key of the connection file, also when the environment has another.
  if (pair && options.as === undefined) return { base_url: file.base_url, ...pair }
  const role = options.as ?? (service === 'admin' ? 'admin' : 'member')
  const own = file[role]
  if (own) return { base_url: file.base_url, ...own }
  throw new CliError(
    'A service with a configuration or a database of yours keeps no keys in its connection file. Make one with "portolan keys create <organization>" and give it with PORTOLAN_API_KEY and PORTOLAN_API_SECRET.',
  )
}

function givenPair({ key, secret }: TargetOptions, env: Shell['env']): Pair | undefined {
  const api_key = key ?? (env.PORTOLAN_API_KEY || undefined)
  const api_secret = secret ?? (env.PORTOLAN_API_SECRET || undefined)
  if (api_key === undefined && api_secret === undefined) return undefined
  if (api_key === undefined || api_secret === undefined)
    throw usageError(
      `A key signs together with its secret, and the ${api_key === undefined ? 'key' : 'secret'} is missing.`,
    )
  return { api_key, api_secret }
}

/** Reads the connection file of the data directory; a sentence when no service is running there. */
export async function readConnectionFile(
  shell: Shell,
  options: GlobalOptions,
): Promise<ConnectionFile> {
  const { findDataDir, readConfig } = await import('../configuration.ts')
  const dataDir = await findDataDir(shell, readConfig(shell, options))
  const path = join(dataDir, 'connection.json')
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT')
      throw new CliError(
        `No service is running on ${dataDir}. Start it with "portolan start", name its folder with --data-dir, or give --url, --key and --secret.`,
      )
    if (error.code === 'EACCES')
      throw new CliError(
        `Only the user that the service runs as may read ${path}. Run the command as that user, or give --url, --key and --secret.`,
      )
    throw error
  })
  return JSON.parse(text) as ConnectionFile
}
