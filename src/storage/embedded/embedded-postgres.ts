// The embedded PostgreSQL: found, created, started, adopted, restarted and stopped. It uses Node and `lib` and
// no table. It guarantees that two services never use one data directory, that the server listens on a unix
// socket only, and that it does not run as root.

import { rmdir } from 'node:fs/promises'
import type { Log } from '../../lib/log.ts'
import { archiveSettings, type BackupSettings, prepareArchive } from './archive.ts'
import { findBinaries } from './binaries.ts'
import { ensureDataDir } from './data-dir.ts'
import { EmbeddedPostgresError } from './errors.ts'
import { initialize, prepareDirectories, readDataVersion } from './initialize.ts'
import { connectionOf, type EmbeddedConnection, type Layout, layoutOf } from './layout.ts'
import { type DataDirLock, lockDataDir, startWaitMs } from './lock.ts'
import { npmBinaries } from './npm-binaries.ts'
import { bringUp, type ServerPlan } from './server.ts'
import { chooseServerUser } from './server-user.ts'
import type { Settings } from './settings.ts'
import { startSupervisor } from './supervisor.ts'

/** How to start the embedded server. */
export type EmbeddedPostgresOptions = {
  dataDir: string
  log: Log
  /** A directory with `postgres` and `initdb`, instead of looking for one. */
  binaries?: string | undefined
  settings?: Settings | undefined
  /** Where its WAL is archived; nowhere when absent. */
  backup?: BackupSettings | undefined
  /** Cancels the start. */
  signal?: AbortSignal | undefined
  /** A lock that the caller took already and releases itself. */
  lock?: DataDirLock | undefined
  startTimeoutMs?: number | undefined
}

/** A PostgreSQL server of our own that is kept running until `stop()`. */
export type EmbeddedPostgres = {
  connection: EmbeddedConnection
  version: string
  /** Whether the server had outlived an earlier service. */
  adopted: boolean
  pid(): number
  /** Calls the listener whenever the server died and is back; returns the way to unsubscribe. */
  onRestart(listener: () => void): () => void
  stop(): Promise<void>
}

const plan = async (
  dataDir: string,
  options: EmbeddedPostgresOptions,
  signal: AbortSignal,
): Promise<ServerPlan> => {
  // Recovery after a crash may replay much WAL, hence minutes.
  const { binaries: explicit, backup, log, startTimeoutMs = 300_000 } = options
  const settings = { ...archiveSettings(backup), ...options.settings }
  const layout = layoutOf(dataDir)
  const user = await chooseServerUser(layout.root)
  await prepareDirectories(dataDir, layout, user)
  await prepareArchive(backup, user)
  // An existing directory can be opened by the same major version only.
  const pinned = await readDataVersion(layout)
  const npm = () => npmBinaries({ copyTo: layout.binaries, user })
  const binaries = await findBinaries({ explicit, pinned, user, npm })
  if (pinned === undefined) {
    log.info({ version: binaries.version, path: layout.data }, 'creating the embedded database')
    await initialize(layout, binaries, user, { durable: settings.fsync !== false, signal })
  }
  return { layout, binaries, user, settings, log, startTimeoutMs }
}

const removeOutsideSocket = async ({ root, socket }: Layout): Promise<void> => {
  // A socket below /tmp was made because the data directory's path is too long.
  if (!socket.startsWith(root)) await rmdir(socket).catch(() => {})
}

/** Starts, or adopts, the PostgreSQL server of a data directory and keeps it running. */
export const startEmbeddedPostgres = async (
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> => {
  if (process.platform === 'win32') {
    throw new EmbeddedPostgresError(
      'The embedded database does not run on Windows; set DATABASE_URL to a PostgreSQL server.',
    )
  }
  const { log, signal = new AbortController().signal } = options
  const dataDir = await ensureDataDir(options.dataDir)
  // The lock before anything is touched: two starts at once must not both initialize.
  const lock = options.lock ?? (await lockDataDir(dataDir, startWaitMs))
  const release = async () => {
    if (!options.lock) await lock.release()
  }
  try {
    const serverPlan = await plan(dataDir, options, signal)
    const server = await bringUp(serverPlan, signal)
    const { pid, version, adopted } = server
    log.debug({ pid, version, adopted }, 'the embedded PostgreSQL is ready')
    const supervisor = startSupervisor(serverPlan, server)
    return {
      connection: connectionOf(serverPlan.layout),
      version,
      adopted,
      pid: () => supervisor.server().pid,
      onRestart: (listener) => supervisor.onRestart(() => listener()),
      stop: async () => {
        await supervisor.stop()
        await removeOutsideSocket(serverPlan.layout)
        await release()
      },
    }
  } catch (error) {
    await release()
    throw error
  }
}
