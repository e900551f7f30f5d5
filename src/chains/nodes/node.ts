import { type Breaker, createBreaker } from './breaker.ts'
import { createLatency, type Latency } from './latency.ts'
import { nameOf } from './node-name.ts'
import type { RateGate } from './rate-gate.ts'
import { createWindowGate } from './window-gate.ts'

/** What a node says of itself. */
export type Probe = {
  /** Which chain it is of. */
  identity: string
  head: number
  /** The oldest block that it has. */
  lowest?: number
}

/** What the configuration says of a node, whatever its family. */
export type NodeConfig = {
  url: string
  name?: string
  headers?: Record<string, string>
  /** Nodes with the lowest number are asked first. */
  priority?: number
  requests_per_second?: number
}

/** What is known of one node. A family adds its transport. */
export type NodeRecord = {
  readonly name: string
  readonly transport: string
  readonly priority: number
  /** Has old history only: asked after the others, and never for the present. */
  readonly isReserve: boolean
  readonly gate: RateGate
  readonly breaker: Breaker
  readonly latency: Latency
  /** Which chain it is of; undefined until it has said so since it was last connected. */
  identity: string | undefined
  isWrongChain: boolean
  /** Its history differs from ours. */
  isForked: boolean
  /** Returned invalid data: asked last until then. */
  distrustedUntil: number
  wasProbed: boolean
  isReachable: boolean
  /** The newest block that it has shown; -1 before the first. */
  head: number
  /** Blocks below are known to be pruned. */
  lowest: number
  requests: number
  errors: number
  /** The last failure; empty after an answer. */
  problem: string
}

// Calls go to one node after the other, so that one failure is reason enough to prefer another node,
// and one answer to come back.
const breakerRules = { failuresInRow: 1, successesToClose: 1, forgetsOnClose: false }

/** A node of which nothing is known yet. */
export const createNodeRecord = (
  { url, name, priority = 0, requests_per_second }: NodeConfig,
  { transport, isReserve = false }: { transport: string; isReserve?: boolean },
): NodeRecord => ({
  name: nameOf({ name, url: new URL(url) }),
  transport,
  priority,
  isReserve,
  gate: createWindowGate(requests_per_second),
  breaker: createBreaker(breakerRules),
  latency: createLatency(),
  identity: undefined,
  isWrongChain: false,
  isForked: false,
  distrustedUntil: 0,
  wasProbed: false,
  isReachable: false,
  head: -1,
  lowest: 0,
  requests: 0,
  errors: 0,
  problem: '',
})

/** What a question needs of a node. */
export type Demand = {
  /** It has reached this block. */
  reached?: number
  /** It has reached this block and still has it; nodes that have pruned it are asked last. */
  has?: number
  /** It knows the present state and not only old history. */
  full?: boolean
}

/** Whether a node has got far enough, and is of the right kind. */
export const canServe = (node: NodeRecord, { reached = -1, has = -1, full }: Demand): boolean =>
  node.head >= Math.max(reached, has) && !(full && node.isReserve)

/** The lower, the sooner a node is asked. Priorities are below 10,000. */
export function rankOf(
  node: NodeRecord,
  { has }: Demand,
  { now, bestHead, maxLag }: { now: number; bestHead: number; maxLag: number },
): number {
  // The back-off ends by itself: the next question tries the node.
  node.breaker.probeSucceeded(now)
  const isPruned = has !== undefined && has < node.lowest
  const isLagging = bestHead - node.head > maxLag && !node.isReserve
  return (
    (isPruned ? 1e8 : 0) +
    (node.distrustedUntil > now ? 1e7 : 0) +
    (node.breaker.state() === 'open' ? 1e6 : 0) +
    (isLagging ? 1e5 : 0) +
    (node.isReserve ? 1e4 : 0) +
    node.priority
  )
}
