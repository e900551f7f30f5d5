import { type Breaker, createBreaker } from '../../nodes/breaker.ts'
import { createLatency, type Latency } from '../../nodes/latency.ts'
import { createRateGate, type RateGate } from '../../nodes/rate-gate.ts'
import { describeNode, type NodeStatus, type StatusContext } from '../../nodes/status.ts'
import type { HttpTransport } from '../transport/http-transport.ts'
import type { Transport } from '../transport/transport.ts'
import type { Capability, Head } from './pool-types.ts'

/** One configured node. */
export type UpstreamOptions = {
  name?: string
  url: string
  headers?: Record<string, string>
  priority?: number
  /** Known by the operator; otherwise found out. */
  archive?: boolean
  requests_per_second?: number
}

/** What the pool knows of one node. */
export type Upstream = {
  name: string
  priority: number
  transport: Transport | HttpTransport
  breaker: Breaker
  gate: RateGate
  latency: Latency
  /** Whether its chain has been found to be the right one since it was last connected. */
  isVerified: boolean
  isWrongChain: boolean
  isSyncing: boolean
  /** Whether the last probe found it. */
  isReachable: boolean
  wasProbed: boolean
  chainId: number | null
  clientVersion: string
  head: Head | undefined
  capabilities: Set<Capability>
  /** Whether it has said what it can do. */
  isExplored: boolean
  /** Methods that the node reported as unknown, and when to ask again. */
  lacking: Map<string, number>
  /** When it last answered anything. */
  answeredAt: number
  inFlight: number
  requests: number
  errors: number
  /** The last thing that went wrong, in words. */
  problem: string
}

/** A node of which nothing is known yet. */
export const createUpstream = (
  name: string,
  { priority = 0, requests_per_second }: UpstreamOptions,
  transport: Transport | HttpTransport,
): Upstream => ({
  name,
  priority,
  transport,
  breaker: createBreaker(),
  gate: createRateGate(requests_per_second),
  latency: createLatency(),
  isVerified: false,
  isWrongChain: false,
  isSyncing: false,
  isReachable: false,
  wasProbed: false,
  chainId: null,
  clientVersion: '',
  head: undefined,
  capabilities: new Set(),
  isExplored: false,
  lacking: new Map(),
  answeredAt: 0,
  inFlight: 0,
  requests: 0,
  errors: 0,
  problem: '',
})

/** Forgets what a node reported before it was disconnected. Counts and latencies stay. */
export const resetUpstream = (upstream: Upstream): void => {
  Object.assign(upstream, {
    breaker: createBreaker(),
    isVerified: false,
    isSyncing: false,
    isReachable: false,
    wasProbed: false,
    head: undefined,
    capabilities: new Set<Capability>(),
    isExplored: false,
    problem: '',
  } satisfies Partial<Upstream>)
  upstream.lacking.clear()
}

/** Whether it is there and on the right chain, whatever it does to calls. */
export const isPresent = (upstream: Upstream): boolean =>
  upstream.isVerified && upstream.isReachable && !upstream.isWrongChain

/** Whether calls may go to it, apart from what the call itself needs and from rate limits. */
export const isUsable = (upstream: Upstream): boolean =>
  upstream.isVerified && !upstream.isWrongChain && upstream.breaker.allows(upstream.inFlight)

/** What `/status` shows of a node. */
export const statusOf = (upstream: Upstream, context: StatusContext): NodeStatus =>
  describeNode(
    {
      ...upstream,
      transport: upstream.transport.kind,
      chain_id: upstream.chainId,
      client_version: upstream.clientVersion,
      head: upstream.head?.number ?? null,
      drawback: upstream.isSyncing ? 'syncing' : '',
    },
    context,
  )
