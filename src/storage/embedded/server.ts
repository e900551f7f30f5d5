import { spawn } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Binaries } from './binaries.ts'
import { EmbeddedPostgresError } from './errors.ts'
import type { Layout } from './layout.ts'
import { boundLogFile, openLogFile, readFailure } from './log-file.ts'
import { disownPidFile, findPostmaster, serverArguments } from './postmaster.ts'
import { probe } from './probe.ts'
import type { ServerUser } from './server-user.ts'
import { renderSettings, type Settings } from './settings.ts'
import { haltServer, type WatchedProcess, watchChild, watchStranger } from './watched-process.ts'

/** One running server process. */
export type Server = WatchedProcess & { version: string; adopted: boolean }

/** All that is needed to start a server, any number of times. */
export type ServerPlan = {
  layout: Layout
  binaries: Binaries
  user: ServerUser | undefined
  settings: Settings
  log: Log
  /** How long recovery after a crash may take. */
  startTimeoutMs: number
}

// A server that listens answers at once, if only "not yet"; one that does not lost its socket.
const silenceMs = 15_000
// A server starts within tens of milliseconds; waiting longer would be felt at every start.
const pollMs = 10

const awaitReady = async (
  { layout, startTimeoutMs }: ServerPlan,
  watched: WatchedProcess,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const begin = Date.now()
  let heard = begin
  while (!watched.gone()) {
    const answer = await probe(layout)
    if (answer.state === 'ready') return answer.version
    const now = Date.now()
    if (answer.state === 'busy') heard = now
    // Silent too long, or too slow in total: the caller decides whether to stop it.
    if (now - heard > silenceMs || now - begin > startTimeoutMs) return undefined
    await systemClock.sleep(pollMs, signal)
  }
  return undefined
}

const adopt = async (plan: ServerPlan, pid: number, signal: AbortSignal) => {
  // Not a child of this process: it is polled, because its end is not reported.
  const watched = watchStranger(pid)
  const version = await awaitReady(plan, watched, signal)
  if (version !== undefined) return { ...watched, version, adopted: true }
  plan.log.warn({ pid }, 'stopping a leftover PostgreSQL server that does not answer')
  await haltServer(watched)
  return undefined
}

// For glibc: a backend keeps up to 16 MiB for its next statement. By default it gave the memory of each large statement
// back to the system, and the page faults of the next one were 2 to 4 % of the database's CPU while catching up.
const memory = {
  MALLOC_TRIM_THRESHOLD_: `${16 * 2 ** 20}`,
  MALLOC_MMAP_THRESHOLD_: `${8 * 2 ** 20}`,
}

const spawnServer = async ({ layout, binaries, user, settings }: ServerPlan) => {
  await boundLogFile(layout.log)
  // The id in the file of a dead server may be that of another process by now.
  await disownPidFile(layout.data)
  await rm(layout.config, { force: true })
  // Exclusively: the server's user may write here, and could lay a link for root to write through.
  await writeFile(layout.config, renderSettings(layout, settings), { mode: 0o644, flag: 'wx' })
  await using output = await openLogFile(layout.log)
  const { size } = await output.stat()
  const program = join(binaries.directory, 'postgres')
  // A process group of its own: Ctrl-C in the terminal reaches the service, which then stops the
  // server after its last transaction.
  const child = spawn(program, serverArguments(layout.data, layout.config), {
    ...(user && { uid: user.uid, gid: user.gid }),
    cwd: layout.root,
    detached: true,
    env: { PATH: process.env.PATH, LC_ALL: 'C', ...memory },
    stdio: ['ignore', output.fd, output.fd],
  })
  const failed = new Promise<never>((_, reject) => child.once('error', reject))
  failed.catch(() => {})
  if (child.pid === undefined) await failed
  child.unref()
  return { watched: watchChild(child as typeof child & { pid: number }), logStart: size }
}

// Sessions outlive a killed postmaster by a moment, and a server started by a killed service may be
// ahead of ours: both pass by themselves.
const passing = /pre-existing shared memory block|lock file .{0,1000} (already exists|is empty)/

const launch = async (plan: ServerPlan, signal: AbortSignal): Promise<Server | undefined> => {
  const { watched, logStart } = await spawnServer(plan)
  try {
    const version = await awaitReady(plan, watched, signal)
    if (version !== undefined && !watched.gone()) return { ...watched, version, adopted: false }
  } catch (error) {
    await haltServer(watched)
    throw error
  }
  // Asked before it is halted, which kills it too.
  const killed = watched.killed()
  await haltServer(watched)
  if (killed) return undefined
  const reason = await readFailure(plan.layout.log, logStart)
  if (passing.test(reason)) return undefined
  throw new EmbeddedPostgresError(
    `PostgreSQL ${plan.binaries.version} did not start; ${plan.layout.log} says:\n${reason}`,
  )
}

/** Brings the server up: adopts one that outlived its service, else starts one. */
export const bringUp = async (plan: ServerPlan, signal: AbortSignal): Promise<Server> => {
  const begin = Date.now()
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted()
    const survivor = await findPostmaster(plan.layout.data)
    const server = survivor ? await adopt(plan, survivor, signal) : await launch(plan, signal)
    if (server) return server
    if (Date.now() - begin > plan.startTimeoutMs) {
      throw new EmbeddedPostgresError(
        `PostgreSQL does not come up in ${plan.layout.data}: processes of an earlier server still use it, or something kills it.`,
      )
    }
    // Doubles up to a second: leftovers of a killed server usually end within that.
    await systemClock.sleep(Math.min(50 * 2 ** attempt, 1_000), signal)
  }
}
