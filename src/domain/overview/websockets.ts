import { toTimestamp } from '../../lib/clock.ts'
import { listWebSockets, type WebSocketClient } from '../../storage/metrics/websocket-clients.ts'
import { getOrganization } from '../admin/organizations.ts'
import type { AdminHandler } from '../context.ts'
import { askOthers } from './reports.ts'

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
  const { holder } = overview
  const asked = { kind: 'websockets', from: holder, of: organization_id ?? null } as const
  const since = await askOthers({ db, clock, signal }, asked)
  const others = since
    ? await listWebSockets(db, { organization_id, since, except: holder, limit: shown })
    : []
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
