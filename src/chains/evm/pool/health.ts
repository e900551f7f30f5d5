// The watch over one node: its chain id, its head and what it can do. A connection of this process is verified by its own
// probe only; reports of other processes save the probes after that.

import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { TransportFailure, TransportOutcome } from '../transport/transport.ts'
import { type Ask, probeCapabilities } from './capabilities.ts'
import { readHead, readQuantity } from './head.ts'
import type { Sighting } from './node-sharing.ts'
import type { Capability, Head } from './pool-types.ts'
import type { Upstream } from './upstream.ts'

/** Watches over one node. */
export type Health = {
  /** Probes at once; resolves when a probe that began after the call has ended. */
  look(): Promise<void>
  /** The last connection was closed, which idle connections are as well. */
  closed(): void
  /** A head that the node has pushed. */
  push(params: unknown): void
  /** What another process has found out about the node. */
  receive(sighting: Sighting): void
  /** From now on this process probes the node for the others. */
  lead(): void
  stop(): void
}

/** What the watch over one node needs. */
export type HealthOptions = {
  upstream: Upstream
  prefix: string
  archive: boolean | undefined
  clock: Clock
  log: Log
  random(): number
  /** How long to wait until the next probe. */
  intervalMs(hasPushes: boolean): number
  ask: Ask
  /** The node has reported its chain; checks it. */
  judgeChain(): void
  showHead(block: Head): void
  /** Whether there is another node that could take over. */
  hasOthers(): boolean
  changed(): void
  probeTimeoutMs(): number
  /** Other processes that use the node; without them this one probes it. */
  sharing?: { isFollowing(): boolean; publish(sighting: Sighting): void } | undefined
}

const capabilitiesEveryMs = 600_000
const capabilitiesAgainMs = 30_000
// A node that drops every connection must not be asked without a pause.
const hurriedMs = 50
// With no other node there is nothing to gain from giving one up early.
const timeoutsAlone = 3
// Reports of another process count until its next probe should have ended.
const reportMarginMs = 500

/**
 * Probes a node again and again, each time its chain id as well. Where another process of the machine probes it, good
 * news comes from there: this process probes only a new connection, after bad news, and when no news arrive.
 */
export function watch(options: HealthOptions): Health {
  const { upstream, clock, log, prefix } = options
  // A node that is disconnected gets no further question of a probe that is under way.
  const ask: Ask = async (method, params) =>
    loop.isStopped() ? notConnected : await options.ask(method, params)
  let timeouts = 0
  let askedAt = 0
  let capabilitiesAt = 0
  let reportedUntil = 0
  let subscription: unknown

  const probe = async (): Promise<void> => {
    if (!upstream.transport.isOpen() && upstream.transport.kind === 'ws') return miss(notConnected)
    // A node that has asked for a pause is not probed.
    if (upstream.gate.isCooling(clock.now())) return
    askedAt = clock.now()
    const [chain, syncing, latest] = await Promise.all([
      ask(`${prefix}_chainId`, '[]'),
      ask(`${prefix}_syncing`, '[]'),
      ask(`${prefix}_getBlockByNumber`, '["latest",false]'),
    ])
    if (loop.isStopped()) return
    if ('failed' in chain) return miss(chain)
    const chainId = readQuantity(readResult(chain))
    if (chainId === undefined) return miss({ failed: 'bad_reply', detail: 'no chain id' })
    timeouts = 0
    upstream.chainId = chainId
    upstream.wasProbed = true
    upstream.isReachable = true
    upstream.isSyncing = typeof readResult(syncing) === 'object' && readResult(syncing) !== null
    options.judgeChain()
    if (!upstream.isVerified) return publish({ kind: 'failed' })
    if ('failed' in latest && isLost(latest)) return miss(latest)
    const head = readHead(readResult(latest))
    if (!head) return doubt(latest)
    succeed(head)
    publish({ kind: 'answered', chainId, isSyncing: upstream.isSyncing, head })
    if (clock.now() >= capabilitiesAt) await explore()
  }

  const succeed = (head: Head): void => {
    upstream.breaker.probeSucceeded(clock.now())
    if (upstream.breaker.state() === 'closed') upstream.problem = ''
    options.showHead(head)
    options.changed()
  }

  const isFollowing = () => options.sharing?.isFollowing() === true
  const publish = (sighting: Sighting): void => {
    if (!isFollowing()) options.sharing?.publish(sighting)
  }
  /** Whether another process has just found the node in order. */
  const isReported = () => isFollowing() && upstream.isVerified && clock.now() < reportedUntil

  const doubt = (latest: TransportOutcome): void => {
    const problem = 'failed' in latest ? latest.detail : 'the latest block cannot be right'
    if (upstream.problem !== problem)
      log.warn({ upstream: upstream.name, problem }, 'upstream shows no usable head')
    upstream.problem = problem
    upstream.breaker.trip(clock.now())
    publish({ kind: 'failed' })
  }

  const miss = ({ failed, detail }: TransportFailure): void => {
    upstream.wasProbed = true
    // It answers, so it is not unreachable.
    if (failed === 'rate_limited') return
    if (failed === 'timeout') {
      // Busy, but not stalled.
      if (upstream.answeredAt > askedAt) return
      if (++timeouts < timeoutsAlone && !options.hasOthers()) return
    }
    if (upstream.isReachable)
      log.warn({ upstream: upstream.name, problem: detail }, 'upstream does not answer')
    upstream.problem = detail
    upstream.isReachable = false
    // What comes back may be another node, or the same on another chain. One that is unreachable needs no
    // breaker: it is not asked before it has been seen again.
    if (isLost({ failed })) upstream.isVerified = false
    else upstream.breaker.trip(clock.now())
    capabilitiesAt = 0
    subscription = undefined
    if (failed === 'timeout' && options.hasOthers()) upstream.transport.abandon('does not answer')
    options.judgeChain()
    options.changed()
    publish({ kind: 'failed' })
  }

  const explore = async (): Promise<void> => {
    const version = await ask('web3_clientVersion', '[]')
    const client = readResult(version)
    if (typeof client === 'string') upstream.clientVersion = client.slice(0, 200)
    if ('probeBatch' in upstream.transport) await upstream.transport.probeBatch()
    const found = await probeCapabilities(ask, options)
    if (loop.isStopped()) return
    capabilitiesAt = clock.now() + (found ? capabilitiesEveryMs : capabilitiesAgainMs)
    const capabilities = found ?? new Set<Capability>(upstream.capabilities)
    if (upstream.transport.kind === 'ws') await subscribe()
    if (loop.isStopped()) return
    if (subscription !== undefined) capabilities.add('subscriptions')
    else if (!isFollowing()) capabilities.delete('subscriptions')
    upstream.capabilities = capabilities
    upstream.isExplored ||= found !== undefined
    options.changed()
    const { clientVersion, isExplored } = upstream
    if (isExplored) publish({ kind: 'explored', clientVersion, capabilities: [...capabilities] })
  }

  const subscribe = async (): Promise<void> => {
    if (subscription !== undefined || isFollowing()) return
    const outcome = await ask(`${prefix}_subscribe`, '["newHeads"]')
    const id = readResult(outcome)
    if (typeof id === 'string') subscription = id
  }

  /** The heads come from another process. */
  const unsubscribe = (): void => {
    if (subscription === undefined) return
    void ask(`${prefix}_unsubscribe`, JSON.stringify([subscription])).catch(() => {})
    subscription = undefined
  }

  const loop = createProbeLoop({
    ...{ clock, log, probe, isReported },
    pauseMs: () => options.intervalMs(subscription !== undefined) * (0.8 + options.random() * 0.4),
  })
  const { look } = loop
  loop.start()

  return {
    look,
    closed: () => {
      if (!isReported()) void look()
    },
    receive: (sighting) => {
      if (loop.isStopped() || !isFollowing()) return
      if (sighting.kind === 'explored') {
        upstream.clientVersion = sighting.clientVersion
        upstream.capabilities = new Set(sighting.capabilities)
        upstream.isExplored = true
        capabilitiesAt = clock.now() + capabilitiesEveryMs
        return options.changed()
      }
      // A connection of this process is verified by its own probe only, and bad news is checked on it.
      const isOther = sighting.kind === 'answered' && sighting.chainId !== upstream.chainId
      if (sighting.kind === 'failed' || isOther || !upstream.isVerified) {
        reportedUntil = 0
        if (!loop.isProbing()) void look()
        return
      }
      if (sighting.kind === 'head') {
        options.showHead(sighting.head)
        return options.changed()
      }
      reportedUntil =
        clock.now() + 2.4 * options.intervalMs(true) + options.probeTimeoutMs() + reportMarginMs
      upstream.isSyncing = sighting.isSyncing
      upstream.isReachable = true
      unsubscribe()
      succeed(sighting.head)
    },
    lead: () => {
      reportedUntil = 0
      // It subscribes and passes on what the node can do.
      capabilitiesAt = 0
      void look()
    },
    push: (params) => {
      if (typeof params !== 'object' || params === null || !upstream.isVerified) return
      const push = params as { subscription?: unknown; result?: unknown }
      if (subscription === undefined || push.subscription !== subscription) return
      const head = readHead(push.result)
      if (!head) return
      options.showHead(head)
      options.changed()
      publish({ kind: 'head', head })
    },
    stop: loop.stop,
  }
}

/** Probes again and again: after a pause, when asked to, or not while another process has just done so. */
function createProbeLoop(options: {
  clock: Clock
  log: Log
  probe(): Promise<void>
  pauseMs(): number
  isReported(): boolean
}) {
  const { clock, log, probe, isReported } = options
  let sleeper = new AbortController()
  let isStopped = false
  let isProbing = false
  let isWanted = false
  /** Resolved by the next probe that begins. */
  let waiting = Promise.withResolvers<void>()

  /** Waits for the time of the next probe. */
  const pause = async (): Promise<void> => {
    do {
      sleeper = new AbortController()
      const pauseMs = isWanted ? hurriedMs : options.pauseMs()
      await clock.sleep(pauseMs, sleeper.signal).catch(() => {})
    } while (!isStopped && !isWanted && !sleeper.signal.aborted && isReported())
  }

  const run = async (): Promise<void> => {
    while (!isStopped) {
      isWanted = false
      isProbing = true
      const served = waiting
      waiting = Promise.withResolvers<void>()
      await probe().catch((error) => log.error({ err: error }, 'probe failed'))
      isProbing = false
      served.resolve()
      if (!isStopped) await pause()
    }
    waiting.resolve()
  }

  const look = (): Promise<void> => {
    if (isStopped) return Promise.resolve()
    const { promise } = waiting
    if (isProbing) isWanted = true
    else sleeper.abort()
    return promise
  }

  return {
    start: (): void => void run(),
    /** Probes at once; resolves when a probe that began after the call has ended. */
    look,
    isProbing: () => isProbing,
    isStopped: () => isStopped,
    stop: (): void => {
      isStopped = true
      sleeper.abort()
    },
  }
}

/** Whether the connection is gone. What the node does is not known then. */
const isLost = ({ failed }: Pick<TransportFailure, 'failed'>): boolean =>
  failed === 'connect' || failed === 'closed' || failed === 'interrupted'

const notConnected: TransportFailure = { failed: 'connect', detail: 'not connected' }

function readResult(outcome: TransportOutcome): unknown {
  if ('failed' in outcome || !outcome.ok) return undefined
  return JSON.parse(Buffer.from(outcome.result, 'latin1').toString())
}
