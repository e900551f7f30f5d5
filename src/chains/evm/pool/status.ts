import type { UpstreamStatus } from './pool-types.ts'
import type { Upstream } from './upstream.ts'

/** What `/status` shows of a node. */
export function statusOf(
  upstream: Upstream,
  { now, bestHead, maxLag }: { now: number; bestHead: number; maxLag: number },
): UpstreamStatus {
  const head = upstream.head?.number ?? null
  const lag = head === null ? null : Math.max(0, bestHead - head)
  const p50 = upstream.latency.quantile(0.5)
  const p95 = upstream.latency.quantile(0.95)
  return {
    name: upstream.name,
    transport: upstream.transport.kind,
    ...stateOf(upstream, { now, lag, maxLag }),
    chain_id: upstream.chainId,
    client_version: upstream.clientVersion,
    head,
    lag,
    latency_ms: p50 === undefined || p95 === undefined ? null : { p50, p95 },
    error_rate: upstream.breaker.errorRate(),
    capabilities: [...upstream.capabilities].sort(),
    requests: upstream.requests,
    errors: upstream.errors,
  }
}

function stateOf(
  upstream: Upstream,
  { now, lag, maxLag }: { now: number; lag: number | null; maxLag: number },
): Pick<UpstreamStatus, 'state' | 'reason'> {
  const reason = upstream.problem
  if (upstream.isWrongChain)
    return { state: 'wrong_chain', reason: `says that it is chain ${upstream.chainId}` }
  if (!upstream.wasProbed) return { state: 'starting', reason: 'not probed yet' }
  if (!upstream.isReachable) return { state: 'unreachable', reason }
  if (upstream.breaker.state() !== 'closed') return { state: 'open_circuit', reason }
  if (!upstream.isVerified) return { state: 'starting', reason: 'its chain is being checked' }
  if (upstream.gate.isCooling(now)) return { state: 'degraded', reason: 'its rate limit is spent' }
  if (upstream.isSyncing) return { state: 'degraded', reason: 'it is syncing' }
  if (lag !== null && lag > maxLag)
    return { state: 'degraded', reason: `${lag} blocks behind the others` }
  if (upstream.breaker.errorRate() > 0.1) return { state: 'degraded', reason }
  return { state: 'healthy', reason: '' }
}
