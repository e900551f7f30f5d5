import { access, constants, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ensureDataDir } from './data-dir.ts'
import { type EmbeddedPostgresOptions, startEmbeddedPostgres } from './embedded-postgres.ts'
import { EmbeddedPostgresError } from './errors.ts'
import { connectionOf, type EmbeddedConnection, type Layout, layoutOf } from './layout.ts'
import { type DataDirLock, lockDataDir } from './lock.ts'
import { findPostmaster } from './postmaster.ts'
import { probe } from './probe.ts'

/** A way to the embedded server for the time of one command. */
export type EmbeddedVisit = {
  connection: EmbeddedConnection
  /** Whether the server was started for this command only. */
  started: boolean
  stop(): Promise<void>
}

type VisitOptions = Omit<EmbeddedPostgresOptions, 'lock'> & {
  /** How long to wait for a service that is starting, or for another command. */
  waitMs?: number
}

// Short, because a command waits for it; each attempt costs one connection to a unix socket.
const pollMs = 50

const mayUse = async (dataDir: string): Promise<void> => {
  try {
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `This user may not use ${dataDir}; run the command as the user that the service runs as.`,
      { cause },
    )
  }
}

const tryLock = (dataDir: string): Promise<DataDirLock | undefined> =>
  lockDataDir(dataDir).catch((error: unknown) => {
    if (error instanceof EmbeddedPostgresError) return undefined
    throw error
  })

// Says that the lock is held by a command and not by a service.
const commandFile = (dataDir: string): string => join(dataDir, 'portolan.command')

const readText = async (path: string): Promise<string> =>
  (await readFile(path, 'utf8').catch(() => '')).trim()

// A command takes its server down when it ends, so that another command waits for it; a service stays.
const heldByCommand = async (dataDir: string): Promise<boolean> => {
  const command = await readText(commandFile(dataDir))
  return command !== '' && command === (await readText(join(dataDir, 'portolan.pid')))
}

// Connection errors mean not ready; a server of another directory is an error for the operator.
const isReady = async (layout: Layout): Promise<boolean> => {
  try {
    return (await probe(layout)).state === 'ready'
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw error
    return false
  }
}

const visitAlone = async (
  dataDir: string,
  layout: Layout,
  lock: DataDirLock,
  options: VisitOptions,
): Promise<EmbeddedVisit> => {
  // The file goes before the lock, so that the next command does not see a holder that is gone.
  const leave = async () => {
    await rm(commandFile(dataDir), { force: true })
    await lock.release()
  }
  try {
    await writeFile(commandFile(dataDir), `${process.pid}\n`, { mode: 0o600 })
    // A server that outlived its service is left as it was found, for the service's next start.
    if ((await findPostmaster(layout.data)) && (await isReady(layout)))
      return { connection: connectionOf(layout), started: false, stop: leave }
    const server = await startEmbeddedPostgres({ ...options, dataDir, lock })
    const stop = () => server.stop().finally(leave)
    return { connection: server.connection, started: true, stop }
  } catch (error) {
    await leave()
    throw error
  }
}

/** Connects to the server of a data directory beside a running service, or starts it until `stop()`. */
export const connectEmbedded = async (options: VisitOptions): Promise<EmbeddedVisit> => {
  const { waitMs = 60_000, signal } = options
  const dataDir = await ensureDataDir(options.dataDir)
  await mayUse(dataDir)
  const layout = layoutOf(dataDir)
  const deadline = Date.now() + waitMs
  for (;;) {
    signal?.throwIfAborted()
    const lock = await tryLock(dataDir)
    if (lock) return await visitAlone(dataDir, layout, lock, options)
    // Asked before and after the probe: a command writes its file before it starts its server, and removes it after
    // it has stopped it. A command that ends in between is seen before the probe only.
    const wasCommand = await heldByCommand(dataDir)
    if ((await isReady(layout)) && !wasCommand && !(await heldByCommand(dataDir)))
      return { connection: connectionOf(layout), started: false, stop: async () => {} }
    if (Date.now() > deadline)
      throw new EmbeddedPostgresError(
        `Another Portolan is using ${dataDir}, but its database does not answer.`,
      )
    await delay(pollMs)
  }
}
