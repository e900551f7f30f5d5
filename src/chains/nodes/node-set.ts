// The nodes of one network, for families that ask one node after the other (TON, Sui, Polkadot). A family
// provides transport, probe and the meaning of its errors. This folder uses `lib` and the errors of
// `chain.ts`, and no family. It guarantees that a node of another chain is never asked, that every call
// has a time limit and ends with its signal, and that a failing node delays a question only once. The
// EVM pool shares its rate gate, breaker, latency and status.
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { BlockMissingError, ChainUnavailableError, UnreadableError } from '../chain.ts'
import { createBooks } from './books.ts'
import { NodeFault } from './fault.ts'
import { canServe, type Demand, type NodeRecord, rankOf } from './node.ts'
import { createPinning, turnMs } from './pinning.ts'
import { createShared } from './shared.ts'
import { describeNode, type NodeStatus } from './status.ts'

/** What a node says of itself. */
export type Probe = {
  /** Which chain it is of. */
  identity: string
  head: number
  /** The oldest block that it has. */
  lowest?: number
}

/** One question, which any node of the chain may answer. */
export type Question<node extends NodeRecord, answer> = {
  /** For error messages: the method. */
  what: string
  demand?: Demand
  signal: AbortSignal
  /** Calls the node. Throws NodeFault where the answer cannot be used. */
  ask(node: node, signal: AbortSignal): Promise<answer>
  /** Many calls in one: its time says nothing of the latency, and it may take so long. */
  longMs?: number
}

/** What a set of nodes is made of. */
export type NodeSetOptions<node extends NodeRecord> = {
  nodes: readonly node[]
  clock: Clock
  log: Log
  probe(node: node, signal: AbortSignal): Promise<Probe>
  faultOf(error: unknown): NodeFault
  /** Whether the configuration names this chain; without it the first node decides. */
  isExpected?: (identity: string) => boolean
  /** How often every node is probed; without it only when something is asked. */
  probeEveryMs?: number
  /** Of one call. */
  timeoutMs: number
  probeTimeoutMs?: number
  /** How long a question is repeated while no node answers it. */
  waitMs: number
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
const gatePatienceMs = 60_000
const wrongChainAgainMs = 60_000

/**
 * Keeps the nodes of one network and asks them: one after the other until one answers, the best
 * first. A node that fails, lags, is rate limited or returned invalid data is asked after the others;
 * one of another chain, or with another history, is never asked.
 */
export function createNodeSet<node extends NodeRecord>(options: NodeSetOptions<node>) {
  const { nodes, clock, log, timeoutMs, probeTimeoutMs = timeoutMs, waitMs, maxLag } = options
  const books = createBooks({ clock, log, faultOf: options.faultOf })
  const { isExpected = () => true, isDisconnected = () => false } = options
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

  const probedAt = new Map<node, number>()
  const probeOne = async (node: node, signal: AbortSignal): Promise<void> => {
    pinning.begin()
    probedAt.set(node, clock.now())
    node.gate.take(clock.now())
    const limitMs = pinning.pinned() === undefined ? turnMs : probeTimeoutMs
    try {
      const probe = await books.call(node, (limited) => options.probe(node, limited), {
        signal,
        timeoutMs: Math.min(limitMs, probeTimeoutMs),
      })
      node.identity = probe.identity
      node.head = Math.max(node.head, probe.head)
      node.lowest = probe.lowest ?? node.lowest
    } finally {
      if (!signal.aborted) node.wasProbed = true
      pinning.judge()
      changed()
    }
    if (!isOurs(node)) throw new NodeFault('refused', 'on another chain')
  }
  const shared = new Map(
    nodes.map((node) => [
      node,
      createShared((signal) => probeOne(node, AbortSignal.any([signal, stopping.signal]))),
    ]),
  )
  /** Probes a node; concurrent callers share one probe. */
  const refresh = (node: node, signal: AbortSignal): Promise<void> => shared.get(node)!(signal)

  /** Probes the nodes until one of them has answered. Gives the newest block that any has shown. */
  const refreshAny = async (signal: AbortSignal): Promise<number> => {
    signal.throwIfAborted()
    const now = clock.now()
    const isDue = (node: node) =>
      !isDisconnected(node) &&
      (!node.isWrongChain || now - (probedAt.get(node) ?? 0) >= wrongChainAgainMs)
    const usable = nodes.filter((node) => !node.isForked && isDue(node))
    const free = usable.filter(
      (node) => node.breaker.state() !== 'open' && node.gate.waitMs(now) === 0,
    )
    try {
      // Where every node backs off, waiting would be no better than asking.
      await Promise.any((free.length > 0 ? free : usable).map((node) => refresh(node, signal)))
    } catch (error) {
      signal.throwIfAborted()
      // The probe of another node may have decided which chain it is.
      if (!nodes.some((node) => isOurs(node) && node.isReachable))
        throw new ChainUnavailableError(`no node answers: ${reasonOf(error)}`)
    }
    return best
  }

  const watch = async (node: node, everyMs: number): Promise<void> => {
    while (!stopping.signal.aborted) {
      if (!isDisconnected(node)) await refresh(node, stopping.signal).catch(() => {})
      await clock.sleep(everyMs, stopping.signal).catch(() => {})
    }
  }
  const { probeEveryMs } = options
  const watching = probeEveryMs === undefined ? [] : nodes.map((node) => watch(node, probeEveryMs))

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

  /** Asks one node after the other; says why none answered. */
  const askEach = async <answer>(
    candidates: readonly node[],
    { demand = {}, signal, ask, longMs }: Question<node, answer>,
  ) => {
    const counts = { asked: 0, missing: 0, refused: 0 }
    let gateMs = Number.POSITIVE_INFINITY
    let reason = nodes.find(({ problem }) => problem)?.problem ?? 'no node can answer'
    let cause: NodeFault | undefined
    for (const node of candidates) {
      const gatedMs = node.gate.waitMs(clock.now())
      if (gatedMs > 0) {
        gateMs = Math.min(gateMs, gatedMs)
        continue
      }
      node.gate.take(clock.now())
      counts.asked++
      try {
        const answer = await books.call(node, (limited) => ask(node, limited), {
          signal,
          timeoutMs: longMs ?? timeoutMs,
          isLong: longMs !== undefined,
        })
        if (demand.has !== undefined) node.lowest = Math.min(node.lowest, demand.has)
        return { answer }
      } catch (error) {
        if (!(error instanceof NodeFault)) throw error
        reason = `${node.name}: ${error.message}`
        cause = error
        if (error.kind === 'refused') counts.refused++
        if (error.kind !== 'missing') continue
        counts.missing++
        if (demand.has !== undefined) node.lowest = Math.max(node.lowest, demand.has + 1)
      }
    }
    return { ...counts, gateMs, reason, cause }
  }

  /**
   * Asks until one node answers. Throws BlockMissingError where those that can be asked do not have
   * it, UnreadableError where they refuse, and ChainUnavailableError where none answers in time.
   */
  const ask = async <answer>(question: Question<node, answer>): Promise<answer> => {
    const { what, demand = {}, signal } = question
    signal.throwIfAborted()
    const until = clock.now() + waitMs
    const gateUntil = clock.now() + gatePatienceMs
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const candidates = await available(demand, until, signal)
      const tried = await askEach(candidates, question)
      if ('answer' in tried) return tried.answer
      const { asked, missing, refused, gateMs } = tried
      const reason = `${what}: ${tried.reason}`
      if (asked > 0 && asked === candidates.length) {
        if (missing === asked) {
          const usable = nodes.filter(({ isWrongChain, isForked }) => !isWrongChain && !isForked)
          throw new BlockMissingError(reason, { isCertain: asked === usable.length })
        }
        if (refused === asked) throw new UnreadableError(reason)
      }
      const isGated = gateMs < Number.POSITIVE_INFINITY
      const sleepMs = isGated ? gateMs : pauseMs
      if (clock.now() + sleepMs > (isGated ? gateUntil : until))
        throw new ChainUnavailableError(reason, { cause: tried.cause })
      await clock.sleep(sleepMs, signal)
    }
  }

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
          node.gate.take(clock.now())
          const work = (limited: AbortSignal) => question.ask(node, limited)
          const answer = await books.call(node, work, question).catch((error: unknown) => {
            if (error instanceof NodeFault) return undefined
            throw error
          })
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
      await Promise.all(watching)
    },
  }
}

const drawbackOf = ({ isForked, distrustedUntil }: NodeRecord, now: number): string => {
  if (isForked) return 'has another history'
  return distrustedUntil > now ? 'returned invalid data' : ''
}

const reasonOf = (error: unknown): string => {
  const first = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message : 'none can be probed'
}
