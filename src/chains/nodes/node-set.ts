// The nodes of one network, for families that ask one node after the other (TON, Sui, Polkadot). A family
// provides transport, probe and the meaning of its errors. This folder uses `lib` and the errors of
// `chain.ts`, and no family. It guarantees that a node of another chain is never asked, that every call
// has a time limit and ends with its signal, and that a failing node delays a question only once. The
// EVM pool shares its rate gate, breaker, latency and status.

import type { Log } from '../../lib/log.ts'
import { ChainUnavailableError } from '../chain.ts'
import { createAsking, type Question } from './asking.ts'
import { createBooks } from './books.ts'
import { NodeFault } from './fault.ts'
import { canServe, type Demand, type NodeRecord, rankOf } from './node.ts'
import { createPinning } from './pinning.ts'
import { createProbing, type ProbeOptions } from './probing.ts'
import { describeNode, type NodeStatus } from './status.ts'
import { passGate } from './window-gate.ts'

/** What a set of nodes is made of. */
export type NodeSetOptions<node extends NodeRecord> = ProbeOptions<node> & {
  log: Log
  faultOf(error: unknown): NodeFault
  /** Whether the configuration names this chain; without it the first node decides. */
  isExpected?: (identity: string) => boolean
  /** Of one call. */
  timeoutMs: number
  probeTimeoutMs?: number
  /** How long a question is repeated while no node answers it. */
  waitMs: number
  /** How long it is repeated while nodes answer that they are behind; as `waitMs` without it. */
  behindMs?: number
  /** How long a rate limit is waited for. */
  gatePatienceMs?: number
  /** Blocks behind the best from which on a node is asked last. */
  maxLag: number
  capabilitiesOf?(node: node): Iterable<string>
  /** Whether there is no connection, so that a probe is pointless; the family probes when there is one. */
  isDisconnected?(node: node): boolean
}

/** The nodes of one network. */
export type NodeSet<node extends NodeRecord> = ReturnType<typeof createNodeSet<node>>

const firstPauseMs = 50
const longestPauseMs = 400
// A rate limit is waited for longer than a failure: the answer is certain to come.
const usualGatePatienceMs = 60_000

/**
 * Keeps the nodes of one network and asks them: one after the other until one answers, the best
 * first. A node that fails, lags, is rate limited or returned invalid data is asked after the others;
 * one of another chain, or with another history, is never asked.
 */
export function createNodeSet<node extends NodeRecord>(options: NodeSetOptions<node>) {
  const { nodes, clock, log, timeoutMs, probeTimeoutMs = timeoutMs, waitMs, maxLag } = options
  const books = createBooks({ clock, log, faultOf: options.faultOf })
  const { isExpected = () => true, isDisconnected = () => false } = options
  const { behindMs = waitMs, gatePatienceMs = usualGatePatienceMs } = options
  const pinning = createPinning({ nodes, clock, log, isExpected })
  const stopping = new AbortController()
  const listeners = new Set<() => void>()
  const waiting = new Set<() => void>()
  let best = -1

  const isOurs = (node: NodeRecord): boolean =>
    node.identity !== undefined && node.identity === pinning.pinned() && !node.isForked

  /** Something about the nodes changed: questions that wait for a node look again. */
  const changed = (): void => {
    for (const wake of waiting) wake()
    const head = nodes.reduce((top, node) => (isOurs(node) ? Math.max(top, node.head) : top), -1)
    if (head <= best) return
    best = head
    for (const listen of listeners) listen()
  }
  const showHead = (node: node, head: number): void => {
    // A load balancer asks several servers: what one of them has shown stays true.
    if (head <= node.head) return
    node.head = head
    changed()
  }

  /** Counts a call at the rate gate for as long as it takes. */
  const counted = async <answer>(node: node, call: () => Promise<answer>): Promise<answer> => {
    node.gate.begin(clock.now())
    try {
      return await call()
    } finally {
      node.gate.end(clock.now())
    }
  }

  const { refresh, refreshAny, ended } = createProbing({
    ...{ ...options, probeTimeoutMs, gatePatienceMs, isDisconnected, stopped: stopping.signal },
    ...{ books, pinning, isOurs, changed, counted, best: () => best },
  })

  /** The nodes that can answer, the best first. */
  const choose = (demand: Demand): node[] => {
    if (pinning.pinned() === undefined) pinning.judge()
    const context = { now: clock.now(), bestHead: best, maxLag }
    return nodes
      .filter((node) => isOurs(node) && canServe(node, demand))
      .map((node) => ({ node, rank: rankOf(node, demand, context) }))
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ node }) => node)
  }

  const woken = async (ms: number, signal: AbortSignal): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const done = new AbortController()
    waiting.add(resolve)
    try {
      const time = clock.sleep(ms, AbortSignal.any([signal, done.signal]))
      await Promise.race([promise, time.catch(() => {})])
    } finally {
      waiting.delete(resolve)
      done.abort()
    }
    signal.throwIfAborted()
  }

  /** Waits for a node that can answer, and probes meanwhile. */
  const available = async (demand: Demand, until: number, signal: AbortSignal): Promise<node[]> => {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const known = choose(demand)
      if (known.length > 0) return known
      await refreshAny(signal).catch(() => signal.throwIfAborted())
      const found = choose(demand)
      const leftMs = until - clock.now()
      if (found.length > 0 || leftMs <= 0) return found
      await woken(Math.min(pauseMs, leftMs), signal)
    }
  }

  const ask = createAsking<node>({
    ...{ nodes, clock, books, available, counted },
    limits: { timeoutMs, waitMs, behindMs, gatePatienceMs },
  })

  return {
    nodes,
    ask,
    /** Asks every node of the chain at once; undefined where a node does not answer. */
    askAll: async <answer>(
      question: Pick<Question<node, answer>, 'ask' | 'signal'> & { timeoutMs: number },
    ): Promise<{ node: node; answer: answer | undefined }[]> => {
      const usable = nodes.filter(({ isWrongChain, isForked }) => !isWrongChain && !isForked)
      return await Promise.all(
        usable.map(async (node) => {
          if (!isOurs(node)) return { node, answer: undefined }
          const work = (limited: AbortSignal) => question.ask(node, limited)
          const call = () => books.call(node, work, question)
          const answer = await passGate({ gate: node.gate, clock }, question.signal, call).catch(
            (error: unknown) => {
              if (error instanceof NodeFault) return undefined
              throw error
            },
          )
          return { node, answer }
        }),
      )
    },
    choose,
    refresh,
    refreshAny,
    /** What the chain is, as soon as a node has said so. */
    identity: async (signal: AbortSignal): Promise<string> => {
      if (pinning.pinned() === undefined) await available({}, clock.now() + waitMs, signal)
      const identity = pinning.pinned()
      if (identity === undefined) throw new ChainUnavailableError('no node answers')
      return identity
    },
    pinned: pinning.pinned,
    /** The newest block that any node of the chain has shown; -1 before the first. */
    best: () => best,
    onHead: (listen: () => void): (() => void) => {
      listeners.add(listen)
      return () => void listeners.delete(listen)
    },
    /** A node has shown a block by itself. */
    showHead,
    /** The connection to a node ended: what comes back may be another node. */
    lose: (node: node, reason: string): void => {
      books.lose(node, reason)
      node.wasProbed = true
      node.identity = undefined
      node.head = -1
      changed()
    },
    succeed: books.succeed,
    fail: books.fail,
    distrust: books.distrust,
    /** The history of a node is not ours: it is not used until `readmit`. */
    exclude: (node: node): void => {
      if (!node.isForked) log.error({ node: node.name }, 'node has a different history')
      node.isForked = true
      best = -1
      changed()
    },
    readmit: (): void => {
      for (const node of nodes) node.isForked = false
    },
    status: (): NodeStatus[] => {
      const now = clock.now()
      return nodes.map((node) =>
        describeNode(
          {
            ...node,
            chain_id: node.identity ?? null,
            head: node.head < 0 ? null : node.head,
            isVerified: node.identity !== undefined && node.identity === pinning.pinned(),
            drawback: drawbackOf(node, now),
            capabilities: options.capabilitiesOf?.(node) ?? [],
          },
          { now, bestHead: best, maxLag: node.isReserve ? Number.POSITIVE_INFINITY : maxLag },
        ),
      )
    },
    stop: async (): Promise<void> => {
      stopping.abort(new Error('the chain is stopped'))
      await ended()
    },
  }
}

const drawbackOf = ({ isForked, distrustedUntil }: NodeRecord, now: number): string => {
  if (isForked) return 'has another history'
  return distrustedUntil > now ? 'returned invalid data' : ''
}
