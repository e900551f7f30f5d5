import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { TransportFailure, TransportOutcome } from '../transport/transport.ts'
import { type Ask, probeCapabilities } from './capabilities.ts'
import { readHead, readQuantity } from './head.ts'
import type { Capability } from './pool-types.ts'
import type { Upstream } from './upstream.ts'

/** Watches over one node. */
export type Health = {
  /** Probes at once; resolves when a probe that began after the call has ended. */
  look(): Promise<void>
  /** A head that the node has pushed. */
  push(params: unknown): void
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
  showHead(block: NonNullable<ReturnType<typeof readHead>>): void
  /** Whether there is another node that could take over. */
  hasOthers(): boolean
  changed(): void
}

const capabilitiesEveryMs = 600_000
const capabilitiesAgainMs = 30_000
// A node that drops every connection must not be asked without a pause.
const hurriedMs = 50
// With no other node there is nothing to gain from giving one up early.
const timeoutsAlone = 3

/** Probes a node again and again, each time its chain id as well. */
export function watch(options: HealthOptions): Health {
  const { upstream, clock, log, prefix } = options
  // A node that is disconnected gets no further question of a probe that is under way.
  const ask: Ask = async (method, params) =>
    isStopped ? notConnected : await options.ask(method, params)
  let sleeper = new AbortController()
  let isStopped = false
  let timeouts = 0
  let askedAt = 0
  let capabilitiesAt = 0
  let subscription: unknown
  let isProbing = false
  let isWanted = false
  /** Resolved by the next probe that begins. */
  let waiting = Promise.withResolvers<void>()

  const probe = async (): Promise<void> => {
    if (!upstream.transport.isOpen() && upstream.transport.kind === 'ws') return miss(notConnected)
    if (upstream.gate.isCooling(clock.now())) return
    askedAt = clock.now()
    const [chain, syncing, latest] = await Promise.all([
      ask(`${prefix}_chainId`, '[]'),
      ask(`${prefix}_syncing`, '[]'),
      ask(`${prefix}_getBlockByNumber`, '["latest",false]'),
    ])
    if (isStopped) return
    if ('failed' in chain) return miss(chain)
    const chainId = readQuantity(readResult(chain))
    if (chainId === undefined) return miss({ failed: 'bad_reply', detail: 'no chain id' })
    timeouts = 0
    upstream.chainId = chainId
    upstream.wasProbed = true
    upstream.isReachable = true
    upstream.isSyncing = typeof readResult(syncing) === 'object' && readResult(syncing) !== null
    options.judgeChain()
    if (!upstream.isVerified) return
    if ('failed' in latest && isLost(latest)) return miss(latest)
    const head = readHead(readResult(latest))
    if (!head) return doubt(latest)
    upstream.breaker.probeSucceeded(clock.now())
    if (upstream.breaker.state() === 'closed') upstream.problem = ''
    options.showHead(head)
    options.changed()
    if (clock.now() >= capabilitiesAt) await explore()
  }

  const doubt = (latest: TransportOutcome): void => {
    const problem = 'failed' in latest ? latest.detail : 'the latest block cannot be right'
    if (upstream.problem !== problem)
      log.warn({ upstream: upstream.name, problem }, 'upstream shows no usable head')
    upstream.problem = problem
    upstream.breaker.trip(clock.now())
  }

  const miss = ({ failed, detail }: TransportFailure): void => {
    upstream.wasProbed = true
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
  }

  const explore = async (): Promise<void> => {
    const version = await ask('web3_clientVersion', '[]')
    const client = readResult(version)
    if (typeof client === 'string') upstream.clientVersion = client.slice(0, 200)
    if ('probeBatch' in upstream.transport) await upstream.transport.probeBatch()
    const found = await probeCapabilities(ask, options)
    if (isStopped) return
    capabilitiesAt = clock.now() + (found ? capabilitiesEveryMs : capabilitiesAgainMs)
    const capabilities = found ?? new Set<Capability>(upstream.capabilities)
    if (upstream.transport.kind === 'ws') await subscribe()
    if (isStopped) return
    if (subscription !== undefined) capabilities.add('subscriptions')
    else capabilities.delete('subscriptions')
    upstream.capabilities = capabilities
    upstream.isExplored ||= found !== undefined
    options.changed()
  }

  const subscribe = async (): Promise<void> => {
    if (subscription !== undefined) return
    const outcome = await ask(`${prefix}_subscribe`, '["newHeads"]')
    const id = readResult(outcome)
    if (typeof id === 'string') subscription = id
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
      if (isStopped) break
      sleeper = new AbortController()
      const intervalMs = options.intervalMs(subscription !== undefined)
      const pauseMs = isWanted ? hurriedMs : intervalMs * (0.8 + options.random() * 0.4)
      await clock.sleep(pauseMs, sleeper.signal).catch(() => {})
    }
    waiting.resolve()
  }
  void run()

  return {
    look: () => {
      if (isStopped) return Promise.resolve()
      const { promise } = waiting
      if (isProbing) isWanted = true
      else sleeper.abort()
      return promise
    },
    push: (params) => {
      if (typeof params !== 'object' || params === null || !upstream.isVerified) return
      const push = params as { subscription?: unknown; result?: unknown }
      if (subscription === undefined || push.subscription !== subscription) return
      const head = readHead(push.result)
      if (!head) return
      options.showHead(head)
      options.changed()
    },
    stop: () => {
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
