// Probes the nodes of a network: the chain that each is on and its head, now and again while the set is used. Concurrent
// callers share the probe of a node.

import type { Clock } from '../../lib/clock.ts'
import { ChainUnavailableError } from '../chain.ts'
import type { createBooks } from './books.ts'
import { NodeFault } from './fault.ts'
import type { NodeRecord, Probe } from './node.ts'
import { type createPinning, turnMs } from './pinning.ts'
import { createShared } from './shared.ts'

const wrongChainAgainMs = 60_000

/** How the nodes of a set are probed. */
export type ProbeOptions<node extends NodeRecord> = {
  nodes: readonly node[]
  clock: Clock
  probe(node: node, signal: AbortSignal): Promise<Probe>
  /** How often every node is probed; without it only when something is asked. */
  probeEveryMs?: number
  /** Whether the probe passes the rate gate itself, call by call. */
  isProbeGated?: boolean
}

/** What probing needs of the set. */
type ProbingOptions<node extends NodeRecord> = ProbeOptions<node> & {
  probeTimeoutMs: number
  /** How long a rate limit is waited for. */
  gatePatienceMs: number
  isDisconnected(node: node): boolean
  stopped: AbortSignal
  books: ReturnType<typeof createBooks>
  pinning: ReturnType<typeof createPinning>
  isOurs(node: node): boolean
  changed(): void
  counted<answer>(node: node, call: () => Promise<answer>): Promise<answer>
  best(): number
}

/** Begins to probe, where the set is probed by itself. */
export function createProbing<node extends NodeRecord>(options: ProbingOptions<node>) {
  const { nodes, clock, probeTimeoutMs, gatePatienceMs, isDisconnected, stopped } = options
  const { books, pinning, isOurs, changed, counted, best } = options
  const probedAt = new Map<node, number>()
  const probeOne = async (node: node, signal: AbortSignal): Promise<void> => {
    pinning.begin()
    probedAt.set(node, clock.now())
    // A probe that waits at the rate gate between its calls needs the time for that.
    const isShort = pinning.pinned() === undefined && !options.isProbeGated
    const limitMs = isShort ? turnMs : probeTimeoutMs
    const call = () =>
      books.call(node, (limited) => options.probe(node, limited), {
        signal,
        timeoutMs: Math.min(limitMs, probeTimeoutMs),
      })
    try {
      const probe = await (options.isProbeGated ? call() : counted(node, call))
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
      createShared((signal) => probeOne(node, AbortSignal.any([signal, stopped]))),
    ]),
  )
  /** Probes a node; concurrent callers share one probe. */
  const refresh = (node: node, signal: AbortSignal): Promise<void> => shared.get(node)!(signal)

  /** Probes the nodes until one of them has answered. Gives the newest block that any has shown. */
  const refreshAny = async (signal: AbortSignal): Promise<number> => {
    const gateUntil = clock.now() + gatePatienceMs
    for (;;) {
      signal.throwIfAborted()
      const waitMs = await refreshOnce(signal)
      if (waitMs === 0) return best()
      if (clock.now() + waitMs > gateUntil)
        throw new ChainUnavailableError('all nodes limit the rate')
      await clock.sleep(waitMs, signal)
    }
  }

  /** Probes the nodes once. Gives how long their rate limits have to be waited for; 0 when one has answered. */
  const refreshOnce = async (signal: AbortSignal): Promise<number> => {
    const now = clock.now()
    const gateMs = () =>
      Math.min(...usable.map(({ gate }) => gate.waitMs(clock.now())), Number.MAX_SAFE_INTEGER)
    const isDue = (node: node) =>
      !isDisconnected(node) &&
      (!node.isWrongChain || now - (probedAt.get(node) ?? 0) >= wrongChainAgainMs)
    const usable = nodes.filter((node) => !node.isForked && isDue(node))
    const passable = usable.filter(({ gate }) => gate.waitMs(now) === 0)
    if (passable.length === 0 && usable.length > 0) return gateMs()
    const free = passable.filter(({ breaker }) => breaker.state() !== 'open')
    try {
      // Where every node backs off, waiting would be no better than asking.
      await Promise.any((free.length > 0 ? free : passable).map((node) => refresh(node, signal)))
    } catch (error) {
      signal.throwIfAborted()
      // A refusal for too many requests is no failure: the rate limit is waited for.
      if (isEveryBusy(error)) return gateMs()
      // The probe of another node may have decided which chain it is.
      if (!nodes.some((node) => isOurs(node) && node.isReachable))
        throw new ChainUnavailableError(`no node answers: ${reasonOf(error)}`)
    }
    return 0
  }

  const watch = async (node: node, everyMs: number): Promise<void> => {
    while (!stopped.aborted) {
      if (!isDisconnected(node)) await refresh(node, stopped).catch(() => {})
      await clock.sleep(everyMs, stopped).catch(() => {})
    }
  }
  const { probeEveryMs } = options
  const watching = probeEveryMs === undefined ? [] : nodes.map((node) => watch(node, probeEveryMs))

  return {
    refresh,
    refreshAny,
    /** Resolves after the stop. */
    ended: async (): Promise<void> => void (await Promise.all(watching)),
  }
}

/** Whether all that were asked refused because of too many requests. */
const isEveryBusy = (error: unknown): boolean =>
  error instanceof AggregateError &&
  error.errors.length > 0 &&
  error.errors.every((one) => one instanceof NodeFault && one.kind === 'busy')

const reasonOf = (error: unknown): string => {
  const first = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message : 'none can be probed'
}
