import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { BlockMissingError, ChainUnavailableError } from '../chain.ts'
import type { IndexNode } from './index-node.ts'
import { createNode, type Node } from './node.ts'
import type { RawBlockId } from './raw.ts'
import type { UpstreamOptions } from './toncenter.ts'

/** A node understood the question and will not answer it. */
export class NodeRefusalError extends Error {
  override name = 'NodeRefusalError'
}

/** A question that any node may answer. */
export type Question<answer> = {
  method: string
  params: object
  /** Only nodes that have this masterchain block are asked. */
  seqno?: number
  signal: AbortSignal
  /** The answer, or undefined when what came cannot be true. */
  accept(result: unknown, node: Node): answer | undefined
}

/** What `/status` says of a node. */
export type NodeStatus = {
  name: string
  state: string
  seqno: number | null
  last_failure: string
  /** Of its API v3; null where it is switched off, or nobody knows where it would be. */
  v3: ReturnType<IndexNode['status']> | null
}

/** The nodes of one network. */
export type Nodes = {
  /** The newest block that any of them has told of; never goes back. */
  head(signal: AbortSignal): Promise<RawBlockId>
  /** The same without asking. */
  bestHead(): RawBlockId | undefined
  /** What they all are. */
  identity(signal: AbortSignal): Promise<string>
  globalId(): number | undefined
  ask<answer>(question: Question<answer>): Promise<answer>
  /** The indexes (API v3) that may be asked now, the best first. */
  indexes(): IndexNode[]
  status(): NodeStatus[]
  stop(): Promise<void>
}

const rounds = 4
const firstPauseMs = 50
const patienceMs = 60_000

/** Asks several nodes: one after the other until one answers, the best first. */
export function createNodes({
  upstreams,
  clock,
  log,
  globalId,
  indexTimeoutMs,
}: {
  upstreams: readonly UpstreamOptions[]
  clock: Clock
  log: Log
  /** What the configuration says; other nodes are never used. */
  globalId?: number
  indexTimeoutMs: number
}): Nodes {
  const nodes = upstreams.map((upstream) => createNode(upstream, { clock, indexTimeoutMs }))
  let best: RawBlockId | undefined
  let identity: string | undefined

  const refresh = async (node: Node, signal: AbortSignal): Promise<void> => {
    await node.refresh(signal)
    if (node.isForeign) throw new Error('is of another network')
    const isOther =
      (globalId !== undefined && node.globalId !== globalId) ||
      (identity !== undefined && node.identity !== identity)
    if (isOther) {
      node.isForeign = true
      log.error(
        { node: node.name, identity: node.identity },
        'node is of another network, not used',
      )
      throw new Error('is of another network')
    }
    identity ??= node.identity
    if (node.head && node.head.seqno > (best?.seqno ?? -1)) best = node.head
  }

  const head = async (signal: AbortSignal): Promise<RawBlockId> => {
    signal.throwIfAborted()
    const now = clock.now()
    const usable = nodes.filter((node) => !node.isForeign)
    const free = usable.filter((node) => node.pausedUntil <= now && node.gate.waitMs(now) === 0)
    // Where all of them are left alone, waiting would be no better than asking.
    const asked = free.length > 0 ? free : usable
    try {
      await Promise.any(asked.map((node) => refresh(node, signal)))
    } catch (error) {
      signal.throwIfAborted()
      throw unavailable('the newest block', error)
    }
    return best!
  }

  const identified = async (signal: AbortSignal): Promise<string> => {
    if (identity === undefined) await head(signal)
    return identity!
  }

  const rank = (now: number): Node[] =>
    nodes
      .filter((node) => !node.isForeign)
      .toSorted(
        (a, b) =>
          Number(a.pausedUntil > now) - Number(b.pausedUntil > now) ||
          a.priority - b.priority ||
          a.pausedUntil - b.pausedUntil,
      )

  const ask = async <answer>(question: Question<answer>): Promise<answer> => {
    const { method, params, seqno = 0, signal, accept } = question
    await identified(signal)
    const deadline = clock.now() + patienceMs
    let reason = 'no node can be asked'
    for (let round = 0; round < rounds; ) {
      let [asked, missing, refused, waitMs] = [0, 0, 0, 0]
      for (const node of rank(clock.now())) {
        const now = clock.now()
        const wait = node.gate.waitMs(now)
        if (wait > 0) {
          waitMs = waitMs === 0 ? wait : Math.min(waitMs, wait)
          continue
        }
        // A node that lags would only say that it does not know.
        if (node.identity === undefined || (node.head?.seqno ?? -1) < seqno) {
          if (seqno > 0 || node.identity === undefined) {
            await refresh(node, signal).catch(() => {})
            signal.throwIfAborted()
            if (node.isForeign || (node.head?.seqno ?? -1) < seqno) continue
          }
        }
        asked++
        const reply = await node.call(method, params, signal)
        if (reply.ok) {
          const answer = accept(reply.result, node)
          if (answer !== undefined) return answer
          reason = `${node.name} returned an invalid response`
          node.accuse()
          continue
        }
        reason = `${node.name}: ${reply.failure.reason}`
        if (reply.failure.kind === 'missing') missing++
        if (reply.failure.kind === 'refused') refused++
      }
      if (asked > 0 && waitMs === 0) {
        if (missing === asked) throw new BlockMissingError(`${method}: ${reason}`)
        if (refused === asked) throw new NodeRefusalError(`${method}: ${reason}`)
      }
      if (waitMs === 0) round++
      if (clock.now() > deadline) break
      if (round < rounds) await clock.sleep(waitMs || firstPauseMs * 2 ** round, signal)
    }
    throw new ChainUnavailableError(`${method}: ${reason}`)
  }

  return {
    head,
    bestHead: () => best,
    identity: identified,
    globalId: () => globalId ?? nodes.find((node) => node.identity === identity)?.globalId,
    ask,
    indexes: () => rank(clock.now()).flatMap(({ index }) => (index?.isUsable() ? [index] : [])),
    status: () => {
      const now = clock.now()
      return nodes.map(
        ({ name, isForeign, pausedUntil, identity: known, head: last, lastFailure, index }) => ({
          name,
          state: isForeign ? 'foreign' : pausedUntil > now ? 'paused' : known ? 'ready' : 'unknown',
          seqno: last?.seqno ?? null,
          last_failure: lastFailure,
          v3: index?.status() ?? null,
        }),
      )
    },
    stop: async () => {
      await Promise.all(nodes.map((node) => node.stop()))
    },
  }
}

const unavailable = (what: string, error: unknown): ChainUnavailableError => {
  const first = error instanceof AggregateError ? error.errors[0] : error
  const reason = first instanceof Error ? first.message : String(first)
  return new ChainUnavailableError(`${what}: ${reason}`)
}
