// The node set of a Sui network on `chains/nodes`: transport, what an error means, and nodes that are kept in reserve for history.

import { decodeBase58 } from '../../lib/base58.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { UnreadableError } from '../chain.ts'
import { NodeFault, parseRetryAfter } from '../nodes/fault.ts'
import { createNodeRecord, type Demand, type NodeConfig, type NodeRecord } from '../nodes/node.ts'
import { createNodeSet } from '../nodes/node-set.ts'
import {
  createSuiClient,
  retryAfterOf,
  type SuiClient,
  type SuiTransport,
  statusOf,
} from './client.ts'

/** A node of the configuration. */
export type SuiUpstream = NodeConfig & {
  transport?: SuiTransport
  /** Old checkpoints only: no balances, no stream. */
  archive?: boolean
}

/** A node with its client. */
export type SuiNode = NodeRecord & {
  client: SuiClient
  /** The last checkpoint that a stream of it gave, while one is open. */
  streamed: number | undefined
  /** Whether it has the list methods. */
  lists: boolean
}

/** Times and bounds. */
export type NodeLimits = { probeMs: number; timeoutMs: number }

const waitMs = 1_000
/** A full node calls itself healthy up to 60 checkpoints behind. */
const maxLag = 60

/** The nodes of one network. */
export type SuiNodes = ReturnType<typeof createNodes>

/** The nodes of a Sui network, over gRPC. */
export function createNodes(options: {
  upstreams: readonly SuiUpstream[]
  /** The first four bytes of the genesis digest in hex. */
  chainId?: string
  clock: Clock
  log: Log
  limits?: Partial<NodeLimits>
  /** Whether checkpoints come with what proves them. */
  isProvable?: boolean
}) {
  const { clock, log, chainId } = options
  const { probeMs = 5_000, timeoutMs = 10_000 } = options.limits ?? {}
  const nodes = options.upstreams.map((upstream): SuiNode => {
    const { transport = 'grpc', archive = false } = upstream
    return {
      ...createNodeRecord(upstream, { transport, isReserve: archive }),
      client: createSuiClient({ ...upstream, isProvable: options.isProvable ?? false }),
      streamed: undefined,
      // Assumed until the node answers UNIMPLEMENTED (`pages.ts`).
      lists: true,
    }
  })
  const set = createNodeSet<SuiNode>({
    nodes,
    clock,
    log,
    ...{ timeoutMs, waitMs, maxLag, probeEveryMs: probeMs },
    faultOf: (error) => faultOf(error, clock.now()),
    isExpected: (identity) => chainId === undefined || prefixOf(identity) === chainId,
    probe: async ({ client }, signal) => {
      const info = await client.info(signal)
      return { identity: `sui:${info.chainId}`, head: info.height, lowest: info.lowest }
    },
    capabilitiesOf,
  })
  return {
    ...set,
    /** Asks one node after the other until one answers; `longMs` is for many calls in one. */
    ask: <answer>(
      demand: Demand,
      signal: AbortSignal,
      ask: (node: SuiNode, signal: AbortSignal) => Promise<answer>,
      longMs?: number,
    ): Promise<answer> =>
      set.ask({ what: 'Sui', demand, signal, ask, ...(longMs !== undefined && { longMs }) }),
    stop: async (): Promise<void> => {
      await set.stop()
      for (const { client } of nodes) client.close()
    },
  }
}

const prefixOf = (identity: string): string | undefined =>
  decodeBase58(identity.slice('sui:'.length))?.subarray(0, 4).toString('hex')

const capabilitiesOf = ({ isReserve, lists, streamed }: SuiNode): string[] => [
  ...(isReserve ? ['archive'] : []),
  ...(lists ? ['checkpoint_lists'] : []),
  ...(streamed === undefined ? [] : ['subscriptions']),
]

// Statuses without an answer of the node: it counts as down.
const noAnswer = new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'CANCELLED', 'UNKNOWN'])

const isAnswer = (status: string | undefined): boolean =>
  status !== undefined && !noAnswer.has(status)

/** What an error of the client means. */
function faultOf(error: unknown, now: number): NodeFault {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof UnreadableError) return new NodeFault('invalid', message)
  const status = statusOf(error)
  if (status === 'NOT_FOUND' || status === 'OUT_OF_RANGE') return new NodeFault('missing', message)
  if (status !== 'RESOURCE_EXHAUSTED')
    return new NodeFault(isAnswer(status) ? 'failed' : 'down', message)
  // The size of a checkpoint is not a failure of the node (grpc-js: `max_receive_message_length`).
  if (/larger than max/i.test(message)) return new NodeFault('refused', message)
  return new NodeFault('busy', message, parseRetryAfter(retryAfterOf(error), now))
}
