// The node set of a TON network on `chains/nodes`: transport, decoding and the rules of what counts as behind or deleted.

import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { NodeFault } from '../nodes/fault.ts'
import { createNodeRecord, type NodeRecord, type Probe } from '../nodes/node.ts'
import { createNodeSet } from '../nodes/node-set.ts'
import type { NodeStatus } from '../nodes/status.ts'
import { passGate } from '../nodes/window-gate.ts'
import type { VerificationCounts } from '../verification.ts'
import { createIndexNode, type IndexNode } from './index-node.ts'
import type { KeyBlocks } from './lite/key-blocks.ts'
import { createLiteServer } from './lite/liteserver.ts'
import { masterShard, readBlockId, readHash, readRawHeader } from './raw.ts'
import {
  createToncenter,
  faultOf,
  faultOfText,
  type Toncenter,
  type UpstreamOptions,
} from './toncenter.ts'

/** What a node is asked. */
export type TonCall<answer> = {
  method: string
  params: object
  /** Only nodes that have this masterchain block are asked. */
  seqno?: number
  /**
   * The answer, or undefined when what came cannot be true. What proves false later is reported by
   * `accuse`.
   */
  accept(result: unknown, accuse: () => void): answer | undefined
}

/** A question that any node may answer. */
export type Question<answer> = TonCall<answer> & { signal: AbortSignal }

type TonNode = NodeRecord & {
  client: Toncenter
  /** Its API v3, where it may have one. */
  index: IndexNode | undefined
}

/** The nodes of one network. */
export type TonNodes = ReturnType<typeof createNodes>

const timeoutMs = 10_000
const probeTimeoutMs = 5_000
const waitMs = 1_000
// Servers behind one address may be seconds apart: what one has shown, another may not have yet.
const behindMs = 10_000
// A slow plan makes following late, and never ends it.
const gatePatienceMs = 600_000
// Masterchain blocks. Servers behind one address differ by a few.
const maxLag = 10
// Nearer to its head than this a node that does not have a block has not got it yet; further below, not any more.
const nearBlocks = 32

/** The nodes of a TON network, which speak the toncenter HTTP API. */
export function createNodes({
  upstreams,
  clock,
  log,
  globalId,
  indexTimeoutMs,
  counts,
  keyBlocks,
}: {
  upstreams: readonly UpstreamOptions[]
  clock: Clock
  log: Log
  /** What the configuration says; nodes of other networks are never used. */
  globalId?: number
  indexTimeoutMs: number
  counts: VerificationCounts
  /** With full verification. */
  keyBlocks?: KeyBlocks | undefined
}) {
  const createClient = (upstream: UpstreamOptions): Toncenter => {
    if (!upstream.key) return createToncenter(upstream, { now: clock.now })
    const { hostname: host, port } = new URL(upstream.url)
    return createLiteServer(
      { host, port: Number(port), key: upstream.key },
      { faultOf: (text) => faultOfText(text, 'failed'), counts, keyBlocks },
    )
  }
  const nodes = upstreams.map((upstream): TonNode => {
    const client = createClient(upstream)
    const record = createNodeRecord(upstream, { transport: upstream.key ? 'adnl' : 'http' })
    const { gate } = record
    const index = client.get && createIndexNode(client.get, { clock, gate, indexTimeoutMs })
    return { ...record, client, index }
  })
  const set = createNodeSet<TonNode>({
    nodes,
    clock,
    log,
    ...{ timeoutMs, probeTimeoutMs, waitMs, behindMs, gatePatienceMs, maxLag },
    faultOf,
    isExpected: (identity) => globalId === undefined || globalIdOf(identity) === globalId,
    // On a plan of one call a second probes would use up what following needs.
    isProbeGated: true,
    probe: (node, signal) => {
      const call: Toncenter['call'] = (...args) =>
        passGate({ gate: node.gate, clock }, signal, () => node.client.call(...args))
      return probe(node, call, signal)
    },
    capabilitiesOf: ({ index }) => (index?.status().state === 'ready' ? ['api_v3'] : []),
  })

  const callNode = async <answer>(
    node: TonNode,
    { method, params, seqno, accept }: TonCall<answer>,
    signal: AbortSignal,
  ): Promise<answer> => {
    const result = await node.client.call(method, params, signal).catch((error: unknown) => {
      throw placed(error, node, seqno)
    })
    const accuse = () => set.distrust(node, `${method}: returned false data`)
    const answer = accept(result, accuse)
    if (answer !== undefined) return answer
    throw new NodeFault('invalid', `${method}: returned an invalid response`)
  }

  return {
    set,
    /** Calls one node. Throws NodeFault where the answer cannot be used. */
    call: callNode,
    /** The hash that a node has at a masterchain number. */
    hashAt: async ({ client }: TonNode, seqno: number, signal: AbortSignal): Promise<Buffer> => {
      const id = { workchain: -1, shard: masterShard, seqno }
      const header = readRawHeader(await client.call('getBlockHeader', id, signal))
      if (header?.id.seqno !== seqno)
        throw new NodeFault('invalid', 'another header than asked for')
      return readHash(header.id.root_hash)
    },
    ask: <answer>({ signal, ...call }: Question<answer>): Promise<answer> =>
      set.ask({
        what: call.method,
        demand: call.seqno === undefined ? {} : { has: call.seqno },
        signal,
        ask: (node, limited) => callNode(node, call, limited),
      }),
    /** What the plans of all nodes allow together. */
    callsPerSecond: (): number =>
      upstreams.reduce(
        (sum, one) => sum + (one.requests_per_second ?? Number.POSITIVE_INFINITY),
        0,
      ),
    /** The global id of the network, where it is known. */
    globalId: (): number | undefined => {
      const identity = set.pinned()
      return globalId ?? (identity === undefined ? undefined : globalIdOf(identity))
    },
    /** The indexes (API v3) that may be asked now, the best first. */
    indexes: async (signal: AbortSignal): Promise<IndexNode[]> => {
      await set.identity(signal)
      return set.choose({}).flatMap(({ index }) => (index?.isUsable() ? [index] : []))
    },
    status: (): (NodeStatus & { v3: ReturnType<IndexNode['status']> | null })[] =>
      set.status().map((status, at) => ({ ...status, v3: nodes[at]?.index?.status() ?? null })),
    stop: async () => {
      await set.stop()
      await Promise.all(nodes.map(({ client }) => client.stop()))
    },
  }
}

/** Whether a node that does not have a block is behind or has deleted it. */
function placed(error: unknown, { head }: TonNode, seqno: number | undefined): unknown {
  const isAbsent =
    error instanceof NodeFault && (error.kind === 'behind' || error.kind === 'missing')
  if (!isAbsent || seqno === undefined) return error
  return new NodeFault(head - seqno < nearBlocks ? 'behind' : 'missing', error.message)
}

/** Asks a node for its newest block, and once for its network. */
async function probe(
  { identity }: TonNode,
  call: Toncenter['call'],
  signal: AbortSignal,
): Promise<Probe> {
  const info = (await call('getMasterchainInfo', {}, signal)) as { last?: unknown; init?: unknown }
  const [last, init] = [readBlockId(info?.last), readBlockId(info?.init)]
  if (!last || !init) throw new NodeFault('invalid', 'the masterchain info cannot be read')
  if (identity !== undefined) return { identity, head: last.seqno }
  // Any block names the network. Every server behind the address has an older one.
  const older = {
    workchain: -1,
    shard: masterShard,
    seqno: Math.max(1, last.seqno - nearBlocks),
  }
  const header = readRawHeader(
    await call('getBlockHeader', older, signal).catch((error: unknown) => {
      if (!(error instanceof NodeFault) || error.kind !== 'missing') throw error
      return call('getBlockHeader', last, signal)
    }),
  )
  if (!header) throw new NodeFault('invalid', 'the header of the newest block cannot be read')
  const zero = readHash(init.root_hash).toString('hex')
  return { identity: `ton:${header.global_id}:${zero}`, head: last.seqno }
}

const globalIdOf = (identity: string): number => Number(identity.split(':')[1])
