// A service that was killed leaves its database running. The next start adopts that server, which is then no child of
// ours: both kinds are watched through one type.

import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { isAlive } from './postmaster.ts'

/** A process whose end we notice, whether or not it is our child. */
export type WatchedProcess = {
  pid: number
  exited: Promise<void>
  gone(): boolean
  /** Whether a signal ended it rather than a decision of its own; known of our children only. */
  killed(): boolean
}

const pollMs = 100

/** Watches a child of ours. */
export const watchChild = (child: ChildProcess & { pid: number }): WatchedProcess => {
  let gone = false
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      gone = true
      resolve()
    })
  })
  return { pid: child.pid, exited, gone: () => gone, killed: () => child.signalCode !== null }
}

/** Watches a process that is not a child; the system does not announce its end, so it is polled. */
export const watchStranger = (pid: number): WatchedProcess => {
  let gone = false
  const exited = (async () => {
    while (await isAlive(pid)) await delay(pollMs, undefined, { ref: false })
    gone = true
  })()
  return { pid, exited, gone: () => gone, killed: () => false }
}

const endsWithin = async (watched: WatchedProcess, ms: number): Promise<boolean> => {
  const patience = new AbortController()
  const late = delay(ms, false, { signal: patience.signal }).catch(() => false)
  const ended = await Promise.race([watched.exited.then(() => true), late])
  patience.abort()
  return ended
}

/** Asks a server to end: politely (sessions are cut, data is checkpointed), then at once (recovery at the next start). */
export const haltServer = async (watched: WatchedProcess): Promise<boolean> => {
  const steps = [
    // "Fast" and "immediate" shutdown in the words of PostgreSQL. SIGTERM would wait for clients, which may never leave.
    ['SIGINT', 30_000],
    ['SIGQUIT', 10_000],
  ] as const
  for (const [signal, patience] of steps) {
    if (watched.gone()) return true
    try {
      process.kill(watched.pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
    if (await endsWithin(watched, patience)) return true
  }
  return false
}
