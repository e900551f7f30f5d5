import type { Overview } from '../domain/context.ts'
import type { Log } from '../lib/log.ts'
import { reportGateway } from '../storage/metrics/gateway-reports.ts'
import { reportKeptMs } from '../storage/metrics/report-time.ts'
import { reportWebSockets } from '../storage/metrics/websocket-clients.ts'
import type { Change } from '../storage/pg/changes.ts'
import type { Db } from '../storage/pg/database.ts'

/** What reports the nodes and the open WebSockets of a process to the others. */
export type ProcessReports = { changed(change: Change): void; stop(): Promise<void> }

/**
 * Writes down the nodes or the open WebSockets of this process when another process lists them, at most once a second
 * for each organization: members may list as often as their limit allows, and every process has to write.
 */
export function createProcessReports(options: {
  db: Db
  log: Log
  overview: Pick<Overview, 'webSockets' | 'nodes' | 'gateways' | 'holder'>
  now?(): number
}): ProcessReports {
  const { db, log, overview, now = () => performance.now() } = options
  const { holder } = overview
  // What is asked for, each once: many requests cost one report after the one that runs.
  const asked = new Map<string, () => Promise<void>>()
  // When each was asked for. Only those of the last second are kept.
  const reported = new Map<string, number>()
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
      const { kind } = change
      const name = kind === 'nodes' ? kind : `${kind} ${change.of}`
      for (const [known, time] of reported) if (now() - time >= reportKeptMs) reported.delete(known)
      if (reported.has(name)) return
      reported.set(name, now())
      asked.set(name, kind === 'nodes' ? reportNodes : () => reportSockets(change.of))
      running ??= run()
    },
    stop: async () => {
      asked.clear()
      await running
    },
  }
}
