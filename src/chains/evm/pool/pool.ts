// The pool of nodes of an EVM network: it chooses a node per call, fails over, hedges and verifies
// answers. It uses `transport` and `chains/nodes`. It guarantees one outcome per call within its
// time limit, never from a node of another chain.

import { createHash } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { createTimers } from '../transport/timers.ts'
import { createAsker, type Observe } from './ask.ts'
import { broadcast } from './broadcast.ts'
import { createCaller } from './caller.ts'
import { readQuantity } from './head.ts'
import { createHeads } from './heads.ts'
import type { NodeSharing } from './node-sharing.ts'
import { createPace } from './pace.ts'
import { createPoolNode, type PoolNode } from './pool-node.ts'
import type { BroadcastOutcome, Head, Pool, PoolOutcome, RawJson } from './pool-types.ts'
import { isUsable, statusOf, type Upstream, type UpstreamOptions } from './upstream.ts'

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
  /** The usual time between blocks of a chain, in milliseconds; undefined where it is not known. */
  blockTimeOf?(chainId: number): Promise<number | undefined>
  /** Begins without connections, until `wake`. */
  isAsleep?: boolean
  /** Other processes of the machine that use the same nodes. */
  sharing?: NodeSharing | undefined
}

/** A pool whose nodes can be replaced while it is used, and disconnected while it is not. */
export type ChangeablePool = Pool & {
  /**
   * Uses these nodes from now on. Nodes with the same settings stay as they are; a node that is gone finishes the
   * calls that it has, and is used until a new one has answered or the time for its first probe is over.
   */
  change(upstreams: readonly UpstreamOptions[]): Promise<void>
  /** Ranks the nodes, and counts their lag, by this tip; without one by the highest of their heads. */
  compareWith(tip: () => Head | undefined): void
  /** Calls that have no outcome yet. */
  busy(): number
  /** Connects and probes the nodes; nothing where it is awake. */
  wake(): void
  /** Closes every connection and forgets what the nodes reported, apart from the chain id. Then every call fails. */
  sleep(): Promise<void>
}

type Member = PoolNode & { settings: string; sharedName: string }

const drainPollMs = 20

/** The nodes of one network behind one interface. It connects at once unless it begins asleep. */
export function createPool(options: PoolOptions): ChangeablePool {
  const { clock, log, prefix, random = Math.random } = options
  const limits = { ...defaultPoolLimits, ...options.limits }
  const timers = createTimers(clock)
  const ask = createAsker({
    clock,
    observe: options.observe ?? (() => {}),
    changed: () => caller.wake(),
  })
  // Those of the members: the parts of the pool read this list.
  const upstreams: Upstream[] = []
  let members: readonly Member[] = []
  const leaving = new Set<Promise<void>>()
  const pendingListeners = new Set<(hash: string) => void>()
  const heads = createHeads({ upstreams, log })
  // Nodes are compared with the canonical tip where there is one: a node is not behind a block that has left the chain.
  let tip: () => Head | undefined = () => undefined
  const bestHead = () => (tip() ?? heads.highest())?.number ?? 0
  const pace = createPace({ clock, ...limits })
  const caller = createCaller({
    ...{ ...limits, upstreams, ask, clock, timers, random, bestHead },
    maxLag: pace.maxLag,
    slowCallMs: pace.slowCallMs,
  })
  const pin = createChainPin({
    ...{ upstreams, log, network: options.network, chainId: options.chainId },
    pinned: (id) => options.blockTimeOf?.(id).then(pace.know, () => {}),
  })
  let isAwake = false
  let isStopped = false

  const { sharing } = options
  const add = (configured: UpstreamOptions): Member => {
    const sharedName = sharedNameOf(configured)
    const node = createPoolNode({
      ...{ configured, prefix, clock, log, random, limits, timers, ask },
      intervalMs: pace.probeIntervalMs,
      probeTimeoutMs: pace.probeTimeoutMs,
      judgeChain: pin.judge,
      isRightChain: pin.isRight,
      showHead: (upstream, head) => {
        pace.see(head.number)
        heads.show(upstream, head)
      },
      hasOthers: (upstream) => upstreams.some((other) => other !== upstream && isUsable(other)),
      changed: caller.wake,
      notifyPending: (hash) => {
        for (const listener of pendingListeners) listener(hash)
      },
      sharing: sharing && {
        isFollowing: sharing.isFollowing,
        publish: (sighting) => sharing.publish(sharedName, sighting),
      },
    })
    return { ...node, settings: settingsOf(configured), sharedName }
  }

  const connect = ({ connect, parts }: Member): void => {
    connect()
    if (pendingListeners.size > 0) parts()?.pending.want(true)
  }

  const use = (next: readonly Member[]): void => {
    members = next
    upstreams.splice(0, upstreams.length, ...next.map(({ upstream }) => upstream))
  }

  /** Ends a node that is not a member any more, after the calls that it has. */
  const leave = async ({ upstream, parts, disconnect }: Member): Promise<void> => {
    parts()?.pending.want(false)
    parts()?.health.stop()
    // Its head does not count any more.
    upstream.isVerified = false
    const deadline = clock.now() + limits.timeoutMs
    while (upstream.inFlight > 0 && clock.now() < deadline && !isStopped)
      await clock.sleep(drainPollMs)
    await disconnect()
  }

  const change = async (configured: readonly UpstreamOptions[]): Promise<void> => {
    const left = [...members]
    const next = configured.map((one) => {
      const at = left.findIndex(({ settings }) => settings === settingsOf(one))
      return at < 0 ? add(one) : left.splice(at, 1)[0]!
    })
    const isNew = next.filter((member) => !members.includes(member))
    // The old nodes stay usable until a new one has answered.
    use([...next, ...left])
    if (isAwake) isNew.forEach(connect)
    if (isAwake && isNew.length > 0 && left.length > 0) {
      const deadline = clock.now() + limits.connectTimeoutMs
      while (!isNew.some(({ upstream }) => isUsable(upstream)) && clock.now() < deadline) {
        if (isStopped) return
        await clock.sleep(drainPollMs)
      }
    }
    if (isStopped) return
    use(next)
    for (const member of left) {
      const ended = leave(member).finally(() => leaving.delete(ended))
      leaving.add(ended)
    }
    caller.wake()
  }

  const wake = (): void => {
    if (isAwake || isStopped) return
    isAwake = true
    caller.begin()
    members.forEach(connect)
  }

  use(options.upstreams.map(add))
  const stopSharing = sharing?.listen({
    seen: (name, sighting) => {
      for (const { sharedName, parts } of members)
        if (sharedName === name) parts()?.health.receive(sighting)
    },
    lead: () => {
      for (const { parts } of members) parts()?.health.lead()
    },
  })
  if (!options.isAsleep) wake()
  const pendingWatches = () => members.flatMap(({ parts }) => parts()?.pending ?? [])

  return {
    send: caller.call,
    request: (request) => new Promise<PoolOutcome>((resolve) => caller.call(request, resolve)),
    broadcast: (rawTransaction, timeoutMs = limits.timeoutMs) =>
      broadcastPatiently({ upstreams, ask, prefix, clock }, rawTransaction, {
        ...{ timeoutMs, patienceMs: limits.patienceMs },
      }),
    chainId: pin.chainId,
    head: heads.highest,
    can: (capability) =>
      upstreams.some((upstream) => isUsable(upstream) && upstream.capabilities.has(capability)),
    has: (capability) => {
      const right = upstreams.filter(({ isWrongChain }) => !isWrongChain)
      if (right.some(({ capabilities }) => capabilities.has(capability))) return true
      // A node that was not explored yet may still have it.
      const isUnsure = right.some(
        ({ isExplored, isReachable, wasProbed }) => !isExplored && (isReachable || !wasProbed),
      )
      return isUnsure ? undefined : false
    },
    look: async () => {
      const probes = members.map(
        ({ parts, upstream }) => [upstream, parts()?.health.look()] as const,
      )
      // A node that does not answer has no head to report.
      await Promise.all(probes.map(([upstream, probed]) => upstream.isReachable && probed))
    },
    onHead: heads.onHead,
    onPending: (listener) => {
      pendingListeners.add(listener)
      for (const pending of pendingWatches()) pending.want(true)
      return () => {
        pendingListeners.delete(listener)
        if (pendingListeners.size === 0) for (const pending of pendingWatches()) pending.want(false)
      }
    },
    pendingBegun: async () => {
      const watched = Promise.all(pendingWatches().map((pending) => pending.begun()))
      await Promise.race([watched, clock.sleep(limits.probeTimeoutMs)])
    },
    pendingSources: () =>
      members.flatMap(({ upstream, parts }) => (parts()?.pending.isAlive() ? [upstream.name] : [])),
    status: () => {
      const context = { now: clock.now(), bestHead: bestHead(), maxLag: pace.maxLag() }
      const shown = upstreams.map((upstream) => statusOf(upstream, context))
      return isAwake
        ? shown
        : shown.map((node) => ({ ...node, state: 'idle' as const, reason: 'not used' }))
    },
    change,
    compareWith: (canonicalTip) => {
      tip = canonicalTip
    },
    busy: caller.busy,
    wake,
    sleep: async () => {
      if (!isAwake) return
      isAwake = false
      await Promise.all(members.map(({ disconnect }) => disconnect()))
    },
    stop: async () => {
      isAwake = false
      isStopped = true
      stopSharing?.()
      caller.stop()
      await Promise.all([...members.map(({ disconnect }) => disconnect()), ...leaving])
      timers.stop()
    },
  }
}

/** Nodes with the same settings are the same node. */
const settingsOf = (configured: UpstreamOptions): string => {
  const { name, url, headers = {}, priority, archive, requests_per_second } = configured
  return JSON.stringify([name, url, headers, priority, archive, requests_per_second])
}

/** Names a node among the processes of a machine, without the key that its address may contain. */
const sharedNameOf = ({ url, headers = {} }: UpstreamOptions): string =>
  createHash('sha256')
    .update(JSON.stringify([url, headers]))
    .digest('hex')

/** Which chain the nodes are on. The first node in the order of the configuration decides, not the fastest. */
function createChainPin(options: {
  upstreams: readonly Upstream[]
  log: Log
  network: string
  chainId: number | undefined
  /** Called once, as soon as the chain is known. */
  pinned(chainId: number): void
}) {
  const { upstreams, log, network } = options
  let { chainId } = options
  let isKnown = false
  return {
    chainId: () => chainId,
    isRight: (quantity: unknown): boolean =>
      chainId !== undefined && readQuantity(quantity) === chainId,
    /** Marks the nodes of another chain. */
    judge: (): void => {
      for (const upstream of upstreams) {
        // An earlier node that was not probed yet may still answer.
        if (chainId !== undefined || !upstream.wasProbed) break
        if (upstream.isReachable && upstream.chainId !== null) {
          chainId = upstream.chainId
          log.debug({ network, chain_id: chainId }, 'the chain id is pinned')
        }
      }
      if (chainId === undefined) return
      if (!isKnown) options.pinned(chainId)
      isKnown = true
      for (const upstream of upstreams) {
        if (!upstream.isReachable || upstream.chainId === null) continue
        const isWrong = upstream.chainId !== chainId
        if (isWrong && !upstream.isWrongChain)
          log.error(
            { network, upstream: upstream.name, chain_id: upstream.chainId },
            'upstream is on another chain and is not used',
          )
        upstream.isWrongChain = isWrong
        upstream.isVerified = !isWrong
      }
    },
  }
}

/** Sends a transaction to the nodes, and waits for one where there is none. */
async function broadcastPatiently(
  to: Parameters<typeof broadcast>[0] & { clock: Clock },
  rawTransaction: RawJson,
  { timeoutMs, patienceMs }: { timeoutMs: number; patienceMs: number },
): Promise<BroadcastOutcome> {
  const { clock } = to
  const end = clock.now() + timeoutMs
  const patience = () => Math.min(end, clock.now() + patienceMs)
  let deadline = patience()
  let last: BroadcastOutcome = { failure: 'NO_UPSTREAM', asked: 0 }
  for (;;) {
    const sent = await broadcast(to, rawTransaction, timeoutMs)
    if (sent) {
      const { isInterrupted, ...outcome } = sent
      if (!isInterrupted || clock.now() >= end) return outcome
      // It is sent again, which is harmless: a node that has it already accepts it.
      last = outcome
      deadline = patience()
    } else if (clock.now() >= deadline) return last
    await clock.sleep(50)
  }
}
