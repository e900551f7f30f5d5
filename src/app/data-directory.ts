// The data directory, the database of the installation and the master key: what a start needs before anything else, shared with
// the commands.

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import type { Log } from '../lib/log.ts'
import { loadMasterKeys, MasterKeyError } from '../storage/access/master-key.ts'
import { createSealer, type KeyRing } from '../storage/access/seal.ts'
import { defaultDataDir, ensureDataDir } from '../storage/embedded/data-dir.ts'
import { startEmbeddedPostgres } from '../storage/embedded/embedded-postgres.ts'
import type { DataDirLock } from '../storage/embedded/lock.ts'
import type { Connection } from '../storage/pg/database.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { resolveSecret } from './config/secrets.ts'

/** The database of an installation, wherever it runs. */
export type DatabaseServer = {
  mode: 'embedded' | 'server'
  connection: Connection
  /** To the server itself, also where `connection` leads to a pooler that shares sessions. */
  direct: Connection
  stop(): Promise<void>
}

/** Where the configuration keeps its data; the folder is made when it is missing. */
export async function openDataDir(config: Config, env: Env, cwd: string): Promise<string> {
  return await ensureDataDir(config.data_dir ?? (await defaultDataDir({ cwd, env })))
}

/** The operator's server, or a PostgreSQL of our own below the data directory. */
export async function openServer(
  config: Config,
  options: {
    dataDir: string
    env: Env
    log: Log
    signal?: AbortSignal | undefined
    /** Taken already by the caller, who releases it. */
    lock?: DataDirLock | undefined
  },
): Promise<DatabaseServer> {
  const { dataDir, env, log, signal, lock } = options
  const { url, embedded } = config.database
  if (url !== undefined) {
    const connectionString = resolveSecret(url, { env, key: 'database.url' })
    const { direct_url } = config.database
    // With a direct address the first one leads to a pooler, which shares sessions between clients.
    const isPooled = direct_url !== undefined
    const direct = isPooled
      ? resolveSecret(direct_url, { env, key: 'database.direct_url' })
      : connectionString
    return {
      mode: 'server',
      connection: { connectionString, ...(isPooled && { isPooled }) },
      direct: { connectionString: direct },
      stop: async () => {},
    }
  }
  const { connection, stop } = await startEmbeddedPostgres({
    dataDir,
    log,
    binaries: embedded.binaries,
    settings: embedded.settings,
    backup: embedded.backup,
    signal,
    lock,
  })
  return { mode: 'embedded', connection, direct: connection, stop }
}

/**
 * Begins to open the embedded server, so that it starts while the modules of the service are loaded: signed requests
 * are trusted only from two seconds after its start on, which the start of the service has to wait for. Undefined with
 * a server of the operator. An error is for the one that awaits it.
 */
export function beginServer(
  config: Config,
  { env, cwd, log, signal }: { env: Env; cwd: string; log: Log; signal?: AbortSignal },
): Promise<DatabaseServer> | undefined {
  if (config.database.url !== undefined) return undefined
  const begun = openDataDir(config, env, cwd).then((dataDir) =>
    openServer(config, { dataDir, env, log, ...(signal && { signal }) }),
  )
  begun.catch(() => {})
  return begun
}

/** The keys that open secrets, the one that seals first: configured, or a file of the data directory. */
export async function openMasterKeys(
  config: Config,
  options: { dataDir: string; env: Env; log: Log },
): Promise<Buffer[]> {
  const { dataDir, env, log } = options
  const { master_key } = config.security
  if (master_key === undefined)
    return await loadMasterKeys({ file: join(dataDir, 'master.key'), create: true })
  const warn = (message: string) => log.warn({}, message)
  const value = master_key.startsWith(execPrefix)
    ? await runKeyCommand(master_key.slice(execPrefix.length))
    : resolveSecret(master_key, { env, key: 'security.master_key', warn })
  return await loadMasterKeys({ value })
}

/** The sealer with the master keys of the configuration. */
export async function openMasterSealer(
  config: Config,
  options: { dataDir: string; env: Env; log: Log },
): Promise<KeyRing> {
  const [first, ...others] = await openMasterKeys(config, options)
  return createSealer(first!, others)
}

/** Whether the source of the master keys can change while the service runs. */
export const canMasterKeysChange = ({ security: { master_key } }: Config): boolean =>
  master_key === undefined || master_key.startsWith(execPrefix) || master_key.startsWith('file:')

/** Begins a master key that a command prints. */
export const execPrefix = 'exec:'

/**
 * Runs a command that prints the master key, such as the client of a KMS or of Vault. There is no shell:
 * words are separated by spaces. What it prints goes into no message; neither does its error output,
 * which may repeat the key.
 */
export const runKeyCommand = (command: string, timeoutMs = 10_000): Promise<string> => {
  const [file = '', ...args] = command.trim().split(/ +/)
  if (!file.startsWith('/'))
    return Promise.reject(
      new MasterKeyError('The command of security.master_key must be an absolute path.'),
    )
  // A key and its newline are far below this; a command that prints more is not the right one.
  const limits = { timeout: timeoutMs, maxBuffer: 4_096, killSignal: 'SIGKILL' as const }
  return new Promise((resolve, reject) => {
    execFile(file, args, { ...limits, shell: false }, (error, stdout) => {
      if (!error) return resolve(stdout)
      const why = error.killed ? `gave no answer within ${timeoutMs} ms` : `failed (${error.code})`
      reject(new MasterKeyError(`The command ${file} of security.master_key ${why}.`))
    })
  })
}
