import type { Overview } from '../domain/context.ts'
import type { Log } from '../lib/log.ts'
import { reportGateway } from '../storage/metrics/gateway-reports.ts'
import { reportWebSockets } from '../storage/metrics/websocket-clients.ts'
import type { Change } from '../storage/pg/changes.ts'
import type { Db } from '../storage/pg/database.ts'

/** What reports the nodes and the open WebSockets of a process to the others. */
export type ProcessReports = { changed(change: Change): void; stop(): Promise<void> }

/** Writes down the nodes or the open WebSockets of this process whenever another process lists them. */
export function createProcessReports(options: {
  db: Db
  log: Log
  overview: Pick<Overview, 'webSockets' | 'nodes' | 'gateways' | 'holder'>
}): ProcessReports {
  const { db, log, overview } = options
  const { holder } = overview
  // What is asked for, each once: many requests cost one report after the one that runs.
  const asked = new Map<string, () => Promise<void>>()
  let hasSockets = false
  let running: Promise<void> | undefined

  const reportSockets = async (organization_id: string | null) => {
    const clients = overview.webSockets(organization_id ?? undefined)
    if (clients.length === 0 && !hasSockets) return
    await reportWebSockets(db, { holder, organization_id }, clients)
    hasSockets = clients.length > 0 || organization_id !== null
  }
  const reportNodes = () =>
    reportGateway(db, holder, { nodes: overview.nodes(), gateways: overview.gateways() })
  const run = async () => {
    for (const [name, report] of asked) {
      asked.delete(name)
      await report().catch((error: unknown) =>
        log.warn({ err: error }, 'reporting the nodes or WebSockets of this process failed'),
      )
    }
    running = undefined
  }

  return {
    changed(change) {
      if (change.kind !== 'websockets' && change.kind !== 'nodes') return
      if (change.from === holder) return
      if (change.kind === 'nodes') asked.set('nodes', reportNodes)
      else asked.set(`websockets ${change.of}`, () => reportSockets(change.of))
      running ??= run()
    },
    stop: async () => {
      asked.clear()
      await running
    },
  }
}
