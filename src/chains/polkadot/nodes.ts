import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { NodeFault } from '../nodes/fault.ts'
import { createNodeRecord, type NodeConfig, type NodeRecord } from '../nodes/node.ts'
import { createNodeSet } from '../nodes/node-set.ts'
import { type Connection, openConnection, readNumber } from './connection.ts'
import { bytesOf, isHash, type RawHeader, readHeader } from './header.ts'

/** A node as the configuration names it. */
export type NodeOptions = NodeConfig & { archive?: boolean }

/** One question to the nodes. */
export type Question<answer> = {
  method: string
  params: readonly unknown[]
  /**
   * Only nodes whose final block has reached this number are asked: others would answer for their best
   * chain, which may still change.
   */
  reached?: number
  /** The block, or its state, is asked for; nodes that have pruned it are asked last. */
  stateOf?: number
  /** Whether a result says that the node does not have it, or has pruned it; only with `stateOf`. */
  isMissing?(result: unknown): boolean
  /** Reads a result; undefined when it is invalid, then another node is asked. */
  accept(result: unknown): answer | undefined
  signal: AbortSignal
}

type PolkadotNode = NodeRecord & { connection: Connection; archive: boolean }

/** The nodes of a chain. */
export type PolkadotNodes = ReturnType<typeof openNodes>

/** What a set of nodes is made of. */
export type NodesOptions = {
  upstreams: readonly NodeOptions[]
  clock: Clock
  log: Log
  /** The first block of the chain; by default that of the first node. */
  genesis?: string
  requestTimeoutMs?: number
  probeEveryMs?: number
  /** How long a question waits for a node that can answer. */
  waitMs?: number
}

// Final blocks come every few seconds: a node further behind has stopped following.
const maxLag = 5

/** Opens the nodes of a chain of the Substrate family, over WebSocket. */
export function openNodes(options: NodesOptions) {
  const { upstreams, clock, log, genesis, waitMs = 2_000 } = options
  const { requestTimeoutMs = 15_000, probeEveryMs = 10_000 } = options
  const stopping = new AbortController()
  const nodes = upstreams.map((upstream): PolkadotNode => {
    const connection = openConnection({
      ...upstream,
      silentMs: 3 * probeEveryMs,
      onOpen: () => void set.refresh(node, stopping.signal).catch(() => {}),
      onLoss: (reason) => set.lose(node, reason),
      onHead: (number) => set.showHead(node, number),
    })
    const record = createNodeRecord(upstream, { transport: 'ws' })
    const node = { ...record, connection, archive: upstream.archive ?? false }
    return node
  })
  const set = createNodeSet<PolkadotNode>({
    nodes,
    clock,
    log,
    ...{ timeoutMs: requestTimeoutMs, probeEveryMs, waitMs, maxLag },
    faultOf: (error) => new NodeFault('down', error instanceof Error ? error.message : 'no answer'),
    isExpected: (identity) => genesis === undefined || identity === identityOf(genesis),
    probe,
    isDisconnected: ({ connection }) => connection.isLost(),
    capabilitiesOf: ({ archive, connection }) => [
      ...(archive ? ['archive'] : []),
      ...(connection.isListening() ? ['subscriptions'] : []),
    ],
  })

  return {
    set,
    /** The hash that a node has at a number. */
    hashAt: async (
      { connection }: PolkadotNode,
      number: number,
      signal: AbortSignal,
    ): Promise<Buffer> => {
      const hash = await connection.request('chain_getBlockHash', [number], signal)
      if (!isHash(hash)) throw new NodeFault('missing', `no block ${number}`)
      return bytesOf(hash)
    },
    ask: <answer>(question: Question<answer>): Promise<answer> => {
      const { method, reached, stateOf, signal } = question
      const demand = {
        ...(reached !== undefined && { reached }),
        ...(stateOf !== undefined && { has: stateOf }),
      }
      const ask = ({ connection }: PolkadotNode, limited: AbortSignal) =>
        askOne(connection, question, limited)
      return set.ask({ what: method, demand, signal, ask })
    },
    /** The first block of the chain, where it is known. */
    genesis: (): string | undefined => {
      const identity = set.pinned()
      return genesis ?? (identity && `0x${identity.slice(identityOf('0x').length)}`)
    },
    stop: async () => {
      stopping.abort(new Error('the chain is stopped'))
      for (const { connection } of nodes) connection.stop()
      await set.stop()
    },
  }
}

/** The header of a block, by its hash. */
export const askHeader = (
  nodes: PolkadotNodes,
  block: { number: number; hash: string },
  signal: AbortSignal,
): Promise<RawHeader> =>
  nodes.ask({
    method: 'chain_getHeader',
    params: [block.hash],
    reached: block.number,
    stateOf: block.number,
    signal,
    isMissing: (result) => result === null,
    accept: (result) => readHeader(result, block),
  })

const identityOf = (genesis: string): string => `polkadot:${genesis.slice(2)}`

/** Asks a node for its final block, and after each connection for its chain. */
async function probe(node: PolkadotNode, signal: AbortSignal) {
  const { connection } = node
  const link = await connection.opened()
  let { identity } = node
  if (identity === undefined) {
    const genesis = await connection.request('chain_getBlockHash', [0], signal)
    if (!isHash(genesis)) throw new NodeFault('invalid', 'the first block has no hash')
    identity = identityOf(genesis)
  }
  const hash = await connection.request('chain_getFinalizedHead', [], signal)
  const head = readNumber(await connection.request('chain_getHeader', [hash], signal))
  if (head === undefined) throw new NodeFault('invalid', 'the final block has no number')
  link.throwIfAborted()
  connection.listen()
  return { identity, head }
}

async function askOne<answer>(
  connection: Connection,
  { method, params, stateOf, isMissing, accept }: Question<answer>,
  signal: AbortSignal,
): Promise<answer> {
  const result = await connection.request(method, params, signal).catch((error: unknown) => {
    // Only a block or its state can be pruned.
    if (error instanceof NodeFault && error.kind === 'missing' && stateOf === undefined)
      throw new NodeFault('failed', error.message)
    throw error
  })
  if (isMissing?.(result)) throw new NodeFault('missing', `${method}: not kept`)
  let answer: answer | undefined
  try {
    answer = accept(result)
  } catch (error) {
    if (error instanceof NodeFault) throw error
    // Any shape other than the expected one is invalid.
  }
  if (answer === undefined) throw new NodeFault('invalid', `${method}: invalid response`)
  return answer
}
