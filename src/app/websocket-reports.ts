import type { Overview } from '../domain/context.ts'
import type { Log } from '../lib/log.ts'
import { reportWebSockets } from '../storage/metrics/websocket-clients.ts'
import type { Change } from '../storage/pg/changes.ts'
import type { Db } from '../storage/pg/database.ts'

/** What reports the open WebSockets of a process. */
export type WebSocketReports = { changed(change: Change): void; stop(): Promise<void> }

/** Writes down the open WebSockets of this process whenever another process lists them. */
export function createWebSocketReports(options: {
  db: Db
  log: Log
  overview: Pick<Overview, 'webSockets' | 'holder'>
}): WebSocketReports {
  const { db, log, overview } = options
  const { holder } = overview
  // Those that are asked for, each once: many requests cost one report after the one that runs.
  const asked = new Set<string | null>()
  let hasRows = false
  let running: Promise<void> | undefined

  const report = async (organization_id: string | null) => {
    const clients = overview.webSockets(organization_id ?? undefined)
    if (clients.length === 0 && !hasRows) return
    await reportWebSockets(db, { holder, organization_id }, clients)
    hasRows = clients.length > 0 || organization_id !== null
  }
  const run = async () => {
    for (const organization_id of asked) {
      asked.delete(organization_id)
      await report(organization_id).catch((error: unknown) =>
        log.warn({ err: error }, 'reporting the open WebSockets failed'),
      )
    }
    running = undefined
  }

  return {
    changed(change) {
      if (change.kind !== 'websockets' || change.from === holder) return
      asked.add(change.of)
      running ??= run()
    },
    stop: async () => {
      asked.clear()
      await running
    },
  }
}
