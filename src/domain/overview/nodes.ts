// Nodes as all processes see them. Each has its own connections and breakers, so the handler asks the others by a
// notification and waits for their rows: a list of one process would show an arbitrary part.

import {
  type GatewayCounts,
  type GatewayReport,
  listGatewayReports,
} from '../../storage/metrics/gateway-reports.ts'
import type { AdminHandler, NetworkNodes } from '../context.ts'
import { presentNode } from '../events/present.ts'
import { askOthers } from './reports.ts'

/** From the state that says least to the worst. */
const ranks: Readonly<Record<string, number>> = {
  idle: 0,
  starting: 1,
  healthy: 2,
  degraded: 3,
  open_circuit: 4,
  unreachable: 5,
  wrong_chain: 6,
}

/** Lists the nodes and the gateway, as all processes see them. */
export const ListNodes: AdminHandler<'ListNodes'> = async ({ db, clock, overview, signal }) => {
  if (!overview) return { nodes: [], gateways: [] }
  const { holder } = overview
  const since = await askOthers({ db, clock, signal }, { kind: 'nodes', from: holder })
  const others = since
    ? await listGatewayReports<NetworkNodes[]>(db, { since, except: holder })
    : []
  const own = { nodes: overview.nodes(), gateways: overview.gateways() }
  return mergeReports([own, ...others])
}

/** Joins what processes see. The result does not depend on the order of the reports, except for the order of its rows. */
export function mergeReports(reports: readonly GatewayReport<readonly NetworkNodes[]>[]) {
  const nodes = new Map<string, ReturnType<typeof presentNode>>()
  const gateways = new Map<string, GatewayCounts>()
  for (const report of reports) {
    for (const { chain, network, upstreams } of report.nodes)
      for (const upstream of upstreams) {
        const node = presentNode({ chain, network }, upstream)
        const key = `${chain} ${network} ${node.name}`
        const known = nodes.get(key)
        if (!known || isShownBefore(node, known)) nodes.set(key, node)
      }
    for (const counts of report.gateways) {
      const key = `${counts.chain} ${counts.network}`
      const known = gateways.get(key)
      gateways.set(key, known ? addCounts(known, counts) : counts)
    }
  }
  return { nodes: [...nodes.values()], gateways: [...gateways.values()] }
}

type Node = ReturnType<typeof presentNode>

/** The worse state is shown; of equal ones that with the newest head. */
function isShownBefore(one: Node, other: Node): boolean {
  const byState = (ranks[one.state] ?? 0) - (ranks[other.state] ?? 0)
  if (byState !== 0) return byState > 0
  return Number(one.head ?? -1) > Number(other.head ?? -1)
}

const addCounts = (one: GatewayCounts, other: GatewayCounts): GatewayCounts => ({
  ...{ chain: one.chain, network: one.network },
  websocket_count: one.websocket_count + other.websocket_count,
  subscription_count: one.subscription_count + other.subscription_count,
  filter_count: one.filter_count + other.filter_count,
  cache_bytes: one.cache_bytes + other.cache_bytes,
  cache_hit_count: one.cache_hit_count + other.cache_hit_count,
  cache_miss_count: one.cache_miss_count + other.cache_miss_count,
})
