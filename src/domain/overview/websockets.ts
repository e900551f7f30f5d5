import { toTimestamp } from '../../lib/clock.ts'
import { reportsSince } from '../../storage/metrics/report-time.ts'
import { listWebSockets, type WebSocketClient } from '../../storage/metrics/websocket-clients.ts'
import { notifyChange } from '../../storage/pg/changes.ts'
import { getOrganization } from '../admin/organizations.ts'
import type { AdminHandler } from '../context.ts'

/** How long other processes have to report theirs. */
const reportMs = 500
const shown = 1_000

/** Lists the open WebSockets of all processes. */
export const ListWebSocketClients: AdminHandler<'ListWebSocketClients'> = async (
  context,
  request,
) => {
  const { db, clock, overview, principal, signal } = context
  const isAdmin = principal.role === 'ROLE_ADMIN'
  const wanted = request.organization_id ?? (isAdmin ? undefined : principal.organization_id)
  const organization_id = wanted && (await getOrganization(context, wanted)).organization_id
  if (!overview) return { websocket_clients: [] }
  const since = await reportsSince(db)
  const { holder } = overview
  await notifyChange(db, { kind: 'websockets', from: holder, of: organization_id ?? null })
  await clock.sleep(reportMs, signal)
  const others = await listWebSockets(db, {
    ...{ organization_id, since, except: holder, limit: shown },
  })
  const all = [...overview.webSockets(organization_id), ...others]
    .sort((a, b) => a.open_time.getTime() - b.open_time.getTime())
    .slice(0, shown)
  return { websocket_clients: all.map(present) }
}

const present = ({ client_number: _, subscriptions, open_time, ...client }: WebSocketClient) => ({
  ...client,
  open_time: toTimestamp(open_time),
  subscriptions: Object.entries(subscriptions).map(([name, subscription_count]) => ({
    name,
    subscription_count,
  })),
})
