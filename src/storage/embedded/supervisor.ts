// Keeps the embedded server running. The service continues while it is down: requests are answered with
// DATABASE_UNAVAILABLE and workers retry, so that a crash of the database is an interruption and not an end.

import { systemClock } from '../../lib/clock.ts'
import { boundLogFile } from './log-file.ts'
import { bringUp, type Server, type ServerPlan } from './server.ts'
import { haltServer } from './watched-process.ts'

/** Keeps one server running until it is stopped. */
export type Supervisor = {
  server(): Server
  onRestart(listener: (server: Server) => void): () => void
  stop(): Promise<void>
}

// A server that ran this long did not fail because of its start: the pauses begin anew.
const calmMs = 60_000
// A server that dies at every start is retried, but not in a tight loop.
const longestPauseMs = 10_000

/** Watches a running server and starts it again, with growing pauses, whenever it ends. */
export const startSupervisor = (plan: ServerPlan, first: Server): Supervisor => {
  const { log, layout } = plan
  const stopping = new AbortController()
  const listeners = new Set<(server: Server) => void>()
  let server = first
  let startedAt = Date.now()
  let failures = 0

  // None before the first restart: most crashes are single ones, and clients wait.
  const pause = () => (failures === 0 ? 0 : Math.min(100 * 2 ** (failures - 1), longestPauseMs))

  const revive = async (): Promise<void> => {
    if (Date.now() - startedAt > calmMs) failures = 0
    while (!stopping.signal.aborted) {
      try {
        await systemClock.sleep(pause(), stopping.signal)
        failures++
        server = await bringUp(plan, stopping.signal)
        startedAt = Date.now()
        return
      } catch (error) {
        if (stopping.signal.aborted) return
        log.error({ err: error, failures }, 'the embedded PostgreSQL did not restart')
      }
    }
  }

  const watch = async (): Promise<void> => {
    for (;;) {
      await server.exited
      if (stopping.signal.aborted) return
      log.warn({ pid: server.pid }, 'the embedded PostgreSQL stopped, restarting it')
      await revive()
      if (stopping.signal.aborted) return
      log.info({ pid: server.pid }, 'the embedded PostgreSQL is back')
      // The socket stays the same; listeners only have to open their connections again.
      for (const listener of listeners) listener(server)
    }
  }

  const watching = watch()
  const housekeeping = setInterval(() => void boundLogFile(layout.log).catch(() => {}), calmMs)
  // The log must not keep a process alive that has nothing else to do.
  housekeeping.unref()

  return {
    server: () => server,
    onRestart: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop: async () => {
      stopping.abort()
      clearInterval(housekeeping)
      let ended = await haltServer(server)
      if (ended) {
        await watching
        // A restart may have succeeded in the very moment of the abort.
        ended = await haltServer(server)
      }
      if (!ended) log.error({ pid: server.pid }, 'the embedded PostgreSQL does not stop')
    },
  }
}
