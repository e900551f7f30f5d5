import { decodeBase58 } from '../../lib/base58.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { ChainUnavailableError } from '../chain.ts'
import { nameOf } from '../nodes/node-name.ts'
import { createRateGate, type RateGate } from '../nodes/rate-gate.ts'
import { toHeader } from './checkpoint.ts'
import { createSuiClient, type SuiClient, type SuiTransport, statusOf } from './client.ts'
import { within } from './within.ts'

/** A node of the configuration. */
export type SuiUpstream = {
  url: string
  name?: string
  transport?: SuiTransport
  headers?: Record<string, string>
  priority?: number
  /** Old checkpoints only: no balances, no stream. */
  archive?: boolean
  requests_per_second?: number
}

/** A node with what is known of it. */
export type SuiNode = {
  name: string
  client: SuiClient
  priority: number
  archive: boolean
  gate: RateGate
  height: number
  lowest: number
  /** The last checkpoint that a stream of it gave, while one is open. */
  streamed: number | undefined
  state: 'unknown' | 'up' | 'down' | 'wrong_chain'
  /** Its history is not ours. */
  foreign: boolean
  /** Not asked before this time, unless there is no other. */
  restUntil: number
  pauseMs: number
  /** Whether it has the list methods. */
  lists: boolean
  lastError: string
}

/** What a question needs of a node. */
export type Demand = {
  /** It has this checkpoint. */
  has?: number
  /** It has reached this checkpoint. */
  reached?: number
  /** It is a full node and no archive. */
  full?: boolean
}

/** No node has the checkpoint any more, although some have been reached that should. */
export class CheckpointMissingError extends ChainUnavailableError {
  override name = 'CheckpointMissingError'
}

/** What one checkpoint holds is no fault of the node (grpc-js: more than `max_receive_message_length`). */
const isTooLarge = (error: unknown): boolean =>
  statusOf(error) === 'RESOURCE_EXHAUSTED' &&
  /larger than max/i.test(error instanceof Error ? error.message : '')

/** Times and bounds. */
export type NodeLimits = { probeMs: number; timeoutMs: number }

const firstPauseMs = 250
const longestPauseMs = 10_000
const firstProbeMs = 2_000
/** A full node calls itself healthy up to 60 checkpoints behind. */
const maxLag = 60

/** The nodes of one network. */
export type Nodes = ReturnType<typeof createNodes>

/** Keeps an eye on nodes and asks those that can answer. */
export function createNodes(options: {
  upstreams: readonly SuiUpstream[]
  /** The first four bytes of the genesis digest in hex. */
  chainId?: string
  clock: Clock
  log: Log
  limits?: Partial<NodeLimits>
}) {
  const { clock, log } = options
  const { probeMs = 5_000, timeoutMs = 10_000 } = options.limits ?? {}
  const stopping = new AbortController()
  let pinned: string | undefined
  const nodes = options.upstreams.map((upstream): SuiNode => {
    const { url, name, priority = 0, archive = false, requests_per_second } = upstream
    return {
      name: nameOf({ name, url: new URL(url) }),
      client: createSuiClient(upstream),
      priority,
      archive,
      gate: createRateGate(requests_per_second),
      height: -1,
      lowest: 0,
      streamed: undefined,
      state: 'unknown',
      foreign: false,
      restUntil: 0,
      pauseMs: firstPauseMs,
      lists: true,
      lastError: '',
    }
  })

  const fail = (node: SuiNode, error: unknown): void => {
    const message = error instanceof Error ? error.message : String(error)
    if (node.state === 'up' || node.lastError === '')
      log.warn({ node: node.name, reason: message }, 'Sui node not reached')
    node.lastError = message
    if (statusOf(error) === 'RESOURCE_EXHAUSTED') node.gate.coolDown(clock.now())
    if (node.state !== 'wrong_chain') node.state = 'down'
    node.restUntil = clock.now() + node.pauseMs
    node.pauseMs = Math.min(node.pauseMs * 2, longestPauseMs)
  }
  const succeed = (node: SuiNode): void => {
    if (node.state === 'down') log.info({ node: node.name }, 'Sui node is back')
    if (node.state !== 'wrong_chain') node.state = 'up'
    node.restUntil = 0
    node.pauseMs = firstPauseMs
    node.gate.relax()
  }
  const isOurs = (chainId: string): boolean =>
    pinned !== undefined
      ? chainId === pinned
      : options.chainId === undefined ||
        decodeBase58(chainId)?.subarray(0, 4).toString('hex') === options.chainId

  const probeOne = async (node: SuiNode, limitMs = timeoutMs): Promise<void> => {
    try {
      const info = await within(limitMs, stopping.signal, (signal) => node.client.info(signal))
      node.height = Math.max(node.height, info.height)
      node.lowest = info.lowest
      if (!isOurs(info.chainId)) {
        if (node.state !== 'wrong_chain')
          log.error({ node: node.name, chain: info.chainId }, 'Sui node is of another chain')
        node.state = 'wrong_chain'
        return
      }
      pinned ??= info.chainId
      if (node.state === 'wrong_chain') node.state = 'down'
      succeed(node)
    } catch (error) {
      if (!stopping.signal.aborted) fail(node, error)
    }
  }
  let probing: Promise<void> | undefined
  /** Asks every node how it stands; those who come while it runs share it. */
  const probe = (): Promise<void> => {
    probing ??= (async () => {
      // Until the chain is known the first node decides: one after the other, none for long.
      if (pinned === undefined && options.chainId === undefined) {
        const sorted = nodes.toSorted((a, b) => a.priority - b.priority)
        for (const node of sorted) if (pinned === undefined) await probeOne(node, firstProbeMs)
        const rest = sorted.filter(({ state }) => state === 'unknown')
        await Promise.all(rest.map((node) => probeOne(node)))
      } else await Promise.all(nodes.map((node) => probeOne(node)))
    })().finally(() => {
      probing = undefined
    })
    return probing
  }
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      await probe()
      await clock.sleep(probeMs, stopping.signal).catch(() => {})
    }
  })()

  const best = (): number =>
    nodes.reduce((top, node) => (isTrusted(node) ? Math.max(top, node.height) : top), -1)
  const isTrusted = (node: SuiNode) =>
    (node.state === 'up' || node.state === 'down') && !node.foreign
  const canServe = (node: SuiNode, { has, reached, full }: Demand): boolean =>
    isTrusted(node) &&
    (has === undefined || (node.lowest <= has && node.height >= has)) &&
    (reached === undefined || node.height >= reached) &&
    !(full && node.archive)
  /** Those who can serve, the best first; nodes that rest come last. */
  const choose = (demand: Demand): SuiNode[] => {
    const now = clock.now()
    const rank = (node: SuiNode) =>
      (node.restUntil > now ? 1e6 : 0) +
      (best() - node.height > maxLag && !node.archive ? 1e5 : 0) +
      (node.archive ? 1e4 : 0) +
      node.priority
    return nodes.filter((node) => canServe(node, demand)).toSorted((a, b) => rank(a) - rank(b))
  }

  /** Asks one node after the other until one answers. */
  async function ask<answer>(
    demand: Demand,
    signal: AbortSignal,
    question: (node: SuiNode, signal: AbortSignal) => Promise<answer>,
    limitMs = timeoutMs,
  ): Promise<answer> {
    signal.throwIfAborted()
    let candidates = choose(demand)
    if (candidates.length === 0) {
      await within(timeoutMs, signal, probe)
      candidates = choose(demand)
    }
    let missing: unknown
    let last: unknown
    for (const node of candidates) {
      const waitMs = node.gate.waitMs(clock.now())
      if (waitMs > 0) await clock.sleep(waitMs, signal)
      node.gate.take(clock.now())
      try {
        const answer = await within(limitMs, signal, (limited) => question(node, limited))
        succeed(node)
        return answer
      } catch (error) {
        signal.throwIfAborted()
        last = error
        const status = statusOf(error)
        if (status === 'NOT_FOUND' || status === 'OUT_OF_RANGE') {
          missing = error
          await within(timeoutMs, signal, () => probeOne(node))
        } else if (!isTooLarge(error)) fail(node, error)
      }
    }
    const reason = last instanceof Error ? last.message : 'none can serve it'
    if (missing) throw new CheckpointMissingError(`no Sui node has it: ${reason}`)
    throw new ChainUnavailableError(`no Sui node answers: ${reason}`, { cause: last })
  }

  /** The digest that a node has at a number; undefined where it has none or is away. */
  const digestAt = async (
    node: SuiNode,
    number: number,
    signal: AbortSignal,
  ): Promise<Buffer | undefined> => {
    try {
      const checkpoint = await within(timeoutMs, signal, (limited) =>
        node.client.checkpoint(number, limited),
      )
      return toHeader(checkpoint).hash
    } catch {
      signal.throwIfAborted()
      return undefined
    }
  }

  return {
    nodes,
    ask,
    digestAt,
    choose,
    probe,
    best,
    fail,
    succeed,
    canServe,
    chainId: () => pinned,
    /** A node's history is not ours: it is left out from now on. */
    distrust: (node: SuiNode): void => {
      if (!node.foreign) log.error({ node: node.name }, 'Sui node has another history than ours')
      node.foreign = true
    },
    stop: async (): Promise<void> => {
      stopping.abort(new Error('the chain is stopped'))
      await watching
      for (const { client } of nodes) client.close()
    },
  }
}
