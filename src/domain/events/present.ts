import type { NodeStatus } from '../../chains/nodes/status.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { NetworkName } from '../../storage/tracking/networks.ts'
import type { ListedEventRow } from '../../storage/tracking/tables.ts'

/** A problem as operations and streams show it. */
export const presentProblem = (row: ListedEventRow) => ({
  kind: row.kind,
  chain: row.chain,
  network: row.network,
  subject: row.subject,
  detail: row.detail,
  create_time: toTimestamp(row.create_time),
  resolve_time: row.resolve_time && toTimestamp(row.resolve_time),
})

/** A node as operations and streams show it. */
export const presentNode = ({ chain, network }: NetworkName, node: NodeStatus) => ({
  chain,
  network,
  name: node.name,
  state: node.state,
  reason: node.reason,
  head: node.head === null ? null : `${node.head}`,
  lag_blocks: node.lag === null ? null : `${node.lag}`,
  latency_ms: node.latency_ms?.p50 ?? null,
  error_rate: node.error_rate,
  score: node.latency_ms && Math.round((node.latency_ms.p50 + 1) * (1 + 20 * node.error_rate)),
  breaker: node.breaker,
})
