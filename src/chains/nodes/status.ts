import type { HistogramCounts } from '../../lib/histogram.ts'
import type { Breaker, BreakerState } from './breaker.ts'
import type { Latency } from './latency.ts'
import type { RateGate } from './rate-gate.ts'

/** Whether a node is used, in the words of every family. */
export type NodeState =
  | 'starting'
  | 'healthy'
  | 'degraded'
  | 'open_circuit'
  | 'wrong_chain'
  | 'unreachable'
  /** Not connected, because its network is not used. */
  | 'idle'

/** One node in `/status`, metrics and `portolan chains`. Never its whole URL. */
export type NodeStatus = {
  name: string
  transport: string
  state: NodeState
  reason: string
  /** EIP-155 id, or the identity of a network in its family. */
  chain_id: number | string | null
  client_version: string
  head: number | null
  lag: number | null
  latency_ms: { p50: number; p95: number } | null
  error_rate: number
  breaker: BreakerState
  capabilities: string[]
  requests: number
  errors: number
  /** The times of all calls, for metrics. A function, so that JSON leaves it out. */
  latencies?: () => HistogramCounts
}

/** What the status of a node is made from. */
export type StatusSource = {
  name: string
  transport: string
  chain_id: number | string | null
  client_version?: string
  head: number | null
  breaker: Breaker
  gate: RateGate
  latency: Latency
  /** Whether it was found to be on the right chain. */
  isVerified: boolean
  isWrongChain: boolean
  wasProbed: boolean
  isReachable: boolean
  /** Why it is used last although it answers; empty where it is not. */
  drawback: string
  /** The last failure. */
  problem: string
  capabilities: Iterable<string>
  requests: number
  errors: number
}

/** The state of the other nodes, to which one is compared. */
export type StatusContext = { now: number; bestHead: number; maxLag: number }

const highErrorRate = 0.1
// As many as the error rate looks back on: of fewer requests one failure is no rate.
const fewRequests = 50

/** Describes a node. */
export function describeNode(node: StatusSource, context: StatusContext): NodeStatus {
  const { head, breaker, latency } = node
  const lag = head === null ? null : Math.max(0, context.bestHead - head)
  // Also of few calls: at the head some families (Sui) follow by a stream and call a node once in a while only.
  const p50 = latency.quantile(0.5, 1)
  const p95 = latency.quantile(0.95, 1)
  return {
    name: node.name,
    transport: node.transport,
    ...stateOf(node, lag, context),
    chain_id: node.chain_id,
    client_version: node.client_version ?? '',
    head,
    lag,
    latency_ms: p50 === undefined || p95 === undefined ? null : { p50, p95 },
    error_rate: breaker.errorRate(),
    breaker: breaker.state(),
    capabilities: [...node.capabilities].sort(),
    requests: node.requests,
    errors: node.errors,
    latencies: latency.counts,
  }
}

function stateOf(
  node: StatusSource,
  lag: number | null,
  { now, maxLag }: StatusContext,
): Pick<NodeStatus, 'state' | 'reason'> {
  const reason = node.problem
  if (node.isWrongChain) return { state: 'wrong_chain', reason: `reports chain ${node.chain_id}` }
  if (!node.wasProbed) return { state: 'starting', reason: 'not probed yet' }
  if (!node.isReachable) return { state: 'unreachable', reason }
  if (node.breaker.state() !== 'closed') return { state: 'open_circuit', reason }
  if (!node.isVerified) return { state: 'starting', reason: 'its chain is being verified' }
  if (node.gate.isCooling(now)) return { state: 'degraded', reason: 'rate limited' }
  if (node.drawback) return { state: 'degraded', reason: node.drawback }
  if (lag !== null && lag > maxLag)
    return { state: 'degraded', reason: `${lag} blocks behind the others` }
  if (node.requests >= fewRequests && node.breaker.errorRate() > highErrorRate)
    return { state: 'degraded', reason }
  return { state: 'healthy', reason: '' }
}
