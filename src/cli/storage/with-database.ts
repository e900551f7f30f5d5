import type { Config } from '../../app/config/schema.ts'
import { type OpenedDatabase, openInstallationDatabase } from '../../app/installation.ts'
import { silentLog } from '../../lib/log.ts'
import { readConfig } from '../configuration.ts'
import { type GlobalOptions, note, type Shell } from '../shell.ts'

/** What work on the database as it is may use. */
export type DatabaseWork = OpenedDatabase & { config: Config; signal: AbortSignal }

/** Opens the database for the time of the work, and cancels the work at Ctrl-C. */
export async function withDatabase<result>(
  shell: Shell,
  options: GlobalOptions,
  work: (database: DatabaseWork) => Promise<result>,
): Promise<result> {
  const config = readConfig(shell, options)
  const interrupted = new AbortController()
  const interrupt = () => interrupted.abort(new DOMException('Interrupted.', 'AbortError'))
  process.once('SIGINT', interrupt)
  process.once('SIGTERM', interrupt)
  const { signal } = interrupted
  const log = { ...silentLog, warn: (_: object, message: string) => note(shell, message) }
  const database = await openInstallationDatabase({
    config,
    env: shell.env,
    cwd: shell.cwd,
    log,
    signal,
  })
  try {
    return await work({ ...database, config, signal })
  } finally {
    await database.stop()
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
  }
}
