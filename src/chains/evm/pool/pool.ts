// The pool of nodes of an EVM network: it chooses a node per call, fails over, hedges and verifies
// answers. It uses `transport` and `chains/nodes`. It guarantees one outcome per call within its
// time limit, never from a node of another chain.

import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { headersOf, nameOf } from '../../nodes/node-name.ts'
import { createHttpTransport } from '../transport/http-transport.ts'
import { createTimers } from '../transport/timers.ts'
import type { TransportOutcome } from '../transport/transport.ts'
import { createWsTransport } from '../transport/ws-transport.ts'
import { createAsker, type Observe } from './ask.ts'
import { broadcast } from './broadcast.ts'
import { createCaller } from './caller.ts'
import { readQuantity } from './head.ts'
import { createHeads } from './heads.ts'
import { type Health, watch } from './health.ts'
import { type PendingWatch, watchPending } from './pending-watch.ts'
import type { Pool, PoolOutcome } from './pool-types.ts'
import {
  createUpstream,
  isUsable,
  statusOf,
  type Upstream,
  type UpstreamOptions,
} from './upstream.ts'

/** The bounds of a pool; each has a default. */
export type PoolLimits = {
  /** Total time of a call that names none. */
  timeoutMs: number
  probeIntervalMs: number
  probeTimeoutMs: number
  connectTimeoutMs: number
  /** How long a call waits for a node when there is none. */
  patienceMs: number
  maxReplyBytes: number
  maxInFlight: number
  /** Blocks behind the best from which on a node is asked last. */
  maxLag: number
}

/** The defaults of `PoolLimits`. */
export const defaultPoolLimits: PoolLimits = {
  timeoutMs: 20_000,
  probeIntervalMs: 1_000,
  probeTimeoutMs: 2_000,
  connectTimeoutMs: 3_000,
  patienceMs: 2_000,
  maxReplyBytes: 32 * 1024 * 1024,
  maxInFlight: 20_000,
  maxLag: 5,
}

/** What a pool is made of. */
export type PoolOptions = {
  /** For the log: `c/mainnet`. */
  network: string
  /** Method prefix of the chain: `eth`. */
  prefix: string
  /** Pinned from the start; otherwise the first node's answer is pinned. */
  chainId?: number
  upstreams: UpstreamOptions[]
  clock: Clock
  log: Log
  observe?: Observe
  random?: () => number
  limits?: Partial<PoolLimits>
}

/** The nodes of one network behind one door; starts to probe at once. */
export function createPool(options: PoolOptions): Pool {
  const { clock, log, prefix, random = Math.random } = options
  const limits = { ...defaultPoolLimits, ...options.limits }
  const timers = createTimers(clock)
  const ask = createAsker({
    clock,
    observe: options.observe ?? (() => {}),
    changed: () => caller.wake(),
  })
  const upstreams: Upstream[] = []
  const watches: Health[] = []
  const pendingWatches: PendingWatch[] = []
  const pendingListeners = new Set<(hash: string) => void>()
  const heads = createHeads({ upstreams, log })
  const bestHead = () => heads.best()?.number ?? 0
  const caller = createCaller({ ...limits, upstreams, ask, clock, timers, random, bestHead })
  let chainId = options.chainId

  // The first node in the order of the configuration decides, not the fastest.
  const judgeChains = (): void => {
    for (const upstream of upstreams) {
      if (chainId !== undefined || !upstream.wasProbed) break
      if (upstream.isReachable && upstream.chainId !== null) {
        chainId = upstream.chainId
        log.info({ network: options.network, chain_id: chainId }, 'the chain id is pinned')
      }
    }
    if (chainId === undefined) return
    for (const upstream of upstreams) {
      if (!upstream.isReachable || upstream.chainId === null) continue
      const isWrong = upstream.chainId !== chainId
      if (isWrong && !upstream.isWrongChain)
        log.error(
          { network: options.network, upstream: upstream.name, chain_id: upstream.chainId },
          'upstream is on another chain and is not used',
        )
      upstream.isWrongChain = isWrong
      upstream.isVerified = !isWrong
    }
  }

  const isRight = (quantity: unknown): boolean =>
    chainId !== undefined && readQuantity(quantity) === chainId

  const add = (configured: UpstreamOptions): void => {
    const url = new URL(configured.url)
    const name = nameOf({ name: configured.name, url })
    const shared = {
      url,
      headers: headersOf(url, configured.headers ?? {}),
      maxReplyBytes: limits.maxReplyBytes,
      connectTimeoutMs: limits.connectTimeoutMs,
      timers,
    }
    const transport = url.protocol.startsWith('ws')
      ? createWsTransport({
          ...shared,
          clock,
          random,
          onOpen: () => void health.look(),
          onClose: () => {
            upstream.isVerified = false
            pending.lost()
            void health.look()
          },
          onPush: (params) => {
            health.push(params)
            pending.push(params)
          },
        })
      : createHttpTransport({
          ...shared,
          prefix,
          now: clock.now,
          isRightChain: (result) => isRight(JSON.parse(result)),
          onClose: () => void health.look(),
        })
    const upstream = createUpstream(name, configured, transport)
    upstreams.push(upstream)
    const health = watch({
      upstream,
      prefix,
      archive: configured.archive,
      clock,
      log,
      random,
      intervalMs: limits.probeIntervalMs,
      ask: (method, params) => askOne(upstream, method, params),
      judgeChain: judgeChains,
      showHead: (head) => heads.show(upstream, head, clock.now()),
      hasOthers: () => upstreams.some((other) => other !== upstream && isUsable(other)),
      changed: caller.wake,
    })
    watches.push(health)
    const pending = watchPending({
      upstream,
      prefix,
      clock,
      ask: (method, params) => askOne(upstream, method, params),
      notify: (hash) => {
        for (const listener of pendingListeners) listener(hash)
      },
    })
    pendingWatches.push(pending)
  }

  const askOne = (upstream: Upstream, method: string, params: string): Promise<TransportOutcome> =>
    new Promise((resolve) => {
      const call = {
        method,
        params,
        timeoutMs: limits.probeTimeoutMs,
        idempotent: false,
        isUrgent: true,
      }
      ask(upstream, call, resolve)
    })

  for (const configured of options.upstreams) add(configured)

  return {
    send: caller.call,
    request: (request) => new Promise<PoolOutcome>((resolve) => caller.call(request, resolve)),
    broadcast: async (rawTransaction, timeoutMs = limits.timeoutMs) => {
      const deadline = clock.now() + Math.min(timeoutMs, limits.patienceMs)
      for (;;) {
        const sent = broadcast({ upstreams, ask, prefix }, rawTransaction, timeoutMs)
        if (sent) return sent
        if (clock.now() >= deadline) return { failure: 'NO_UPSTREAM', asked: 0 }
        await clock.sleep(50)
      }
    },
    chainId: () => chainId,
    head: heads.best,
    can: (capability) =>
      upstreams.some((upstream) => isUsable(upstream) && upstream.capabilities.has(capability)),
    has: (capability) => {
      const right = upstreams.filter(({ isWrongChain }) => !isWrongChain)
      if (right.some(({ capabilities }) => capabilities.has(capability))) return true
      const isUnsure = right.some(
        ({ isExplored, isReachable, wasProbed }) => !isExplored && (isReachable || !wasProbed),
      )
      return isUnsure ? undefined : false
    },
    look: async () => {
      const probes = watches.map((health) => health.look())
      // A node that does not answer has no head to report.
      await Promise.all(probes.filter((_, index) => upstreams[index]?.isReachable))
    },
    onHead: heads.onHead,
    onPending: (listener) => {
      pendingListeners.add(listener)
      for (const pending of pendingWatches) pending.want(true)
      return () => {
        pendingListeners.delete(listener)
        if (pendingListeners.size === 0) for (const pending of pendingWatches) pending.want(false)
      }
    },
    pendingBegun: async () => {
      const watched = Promise.all(pendingWatches.map((pending) => pending.begun()))
      await Promise.race([watched, clock.sleep(limits.probeTimeoutMs)])
    },
    pendingSources: () =>
      upstreams.flatMap(({ name }, index) => (pendingWatches[index]?.isAlive() ? [name] : [])),
    status: () => {
      const context = { now: clock.now(), bestHead: bestHead(), maxLag: limits.maxLag }
      return upstreams.map((upstream) => statusOf(upstream, context))
    },
    stop: async () => {
      for (const pending of pendingWatches) pending.want(false)
      for (const health of watches) health.stop()
      caller.stop()
      await Promise.all(upstreams.map(({ transport }) => transport.stop()))
      timers.stop()
    },
  }
}
