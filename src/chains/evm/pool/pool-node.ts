// A node of the pool outlives its connections: a network that is not used disconnects its nodes and connects them again
// (`sleep`, `wake`), while their names, counters and places in the status stay. What they reported is forgotten.

import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { headersOf, nameOf } from '../../nodes/node-name.ts'
import { createHttpTransport } from '../transport/http-transport.ts'
import type { Timers } from '../transport/timers.ts'
import type { Transport, TransportFailure, TransportOutcome } from '../transport/transport.ts'
import { createWsTransport } from '../transport/ws-transport.ts'
import type { Asker } from './ask.ts'
import { type Health, type HealthOptions, watch } from './health.ts'
import { type PendingWatch, watchPending } from './pending-watch.ts'
import { createUpstream, resetUpstream, type Upstream, type UpstreamOptions } from './upstream.ts'

/** One node of a pool, which can be connected and disconnected. */
export type PoolNode = {
  upstream: Upstream
  /** The watches of the connected node; undefined while it is disconnected. */
  parts(): { health: Health; pending: PendingWatch } | undefined
  connect(): void
  disconnect(): Promise<void>
}

/** What a node needs from its pool. */
export type PoolNodeOptions = Pick<
  HealthOptions,
  | 'prefix'
  | 'clock'
  | 'log'
  | 'random'
  | 'judgeChain'
  | 'changed'
  | 'intervalMs'
  | 'probeTimeoutMs'
  | 'sharing'
> & {
  configured: UpstreamOptions
  clock: Clock
  log: Log
  limits: { connectTimeoutMs: number; maxReplyBytes: number }
  timers: Timers
  ask: Asker
  /** Whether the answer to the question for the chain id is that of the pool. */
  isRightChain(quantity: unknown): boolean
  showHead(upstream: Upstream, head: Parameters<HealthOptions['showHead']>[0]): void
  hasOthers(upstream: Upstream): boolean
  notifyPending(hash: string): void
}

/** Makes a node that is not connected yet. */
export function createPoolNode(options: PoolNodeOptions): PoolNode {
  const { configured, clock, log, prefix, random, limits, timers } = options
  const url = new URL(configured.url)
  const kind = url.protocol.startsWith('ws') ? 'ws' : 'http'
  const upstream = createUpstream(
    nameOf({ name: configured.name, url }),
    configured,
    closedTransport(kind),
  )
  const shared = {
    url,
    headers: headersOf(url, configured.headers ?? {}),
    maxReplyBytes: limits.maxReplyBytes,
    connectTimeoutMs: limits.connectTimeoutMs,
    timers,
  }
  let parts: { health: Health; pending: PendingWatch } | undefined

  /** For probes: ahead of the queue and without a retry, so that a probe measures this node and nothing else. */
  const ask = (method: string, params: string): Promise<TransportOutcome> =>
    new Promise((resolve) => {
      const timeoutMs = options.probeTimeoutMs()
      options.ask(
        upstream,
        { method, params, timeoutMs, idempotent: false, isUrgent: true },
        resolve,
      )
    })

  const connect = (): void => {
    // Events of an earlier connection must not reach a later one.
    const isCurrent = () => upstream.transport === transport
    const transport =
      kind === 'ws'
        ? createWsTransport({
            ...shared,
            clock,
            random,
            onOpen: () => void health.look(),
            // Another node may answer at the next connection: it must name its chain before it gets a call.
            onClose: () => {
              if (!isCurrent()) return
              upstream.isVerified = false
              pending.lost()
              void health.look()
            },
            onPush: (params) => {
              if (!isCurrent()) return
              health.push(params)
              pending.push(params)
            },
          })
        : createHttpTransport({
            ...shared,
            prefix,
            now: clock.now,
            // HTTP has many connections, and each of them names its chain. A closed one is therefore only a reason to look.
            isRightChain: (result) => options.isRightChain(JSON.parse(result)),
            onClose: () => health.closed(),
          })
    upstream.transport = transport
    const health = watch({
      ...{ upstream, prefix, clock, log, random, ask },
      archive: configured.archive,
      intervalMs: options.intervalMs,
      probeTimeoutMs: options.probeTimeoutMs,
      sharing: options.sharing,
      judgeChain: options.judgeChain,
      showHead: (head) => options.showHead(upstream, head),
      hasOthers: () => options.hasOthers(upstream),
      changed: options.changed,
    })
    const pending = watchPending({
      ...{ upstream, prefix, clock, ask },
      notify: options.notifyPending,
    })
    parts = { health, pending }
  }

  return {
    upstream,
    parts: () => parts,
    connect,
    disconnect: async () => {
      if (!parts) return
      parts.pending.want(false)
      parts.health.stop()
      parts = undefined
      // Replaced before it stops: the calls that fail by the stop must not be sent to it again.
      const { transport } = upstream
      upstream.transport = closedTransport(kind)
      resetUpstream(upstream)
      await transport.stop()
    },
  }
}

const notConnected: TransportFailure = { failed: 'connect', detail: 'not connected' }

/** The transport of a disconnected node: every call fails. */
const closedTransport = (kind: Transport['kind']): Transport => ({
  kind,
  send: (call) => void setImmediate(() => call.done(notConnected)),
  abandon() {},
  isOpen: () => false,
  capacity: () => 0,
  stop: async () => {},
})
