// The way to a node over WebSockets: one connection that carries all calls and pushes, and a second one for answers whose long
// strings are left out, such as traces. A trace may be hundreds of megabytes of which little is read: on the first connection every
// call and every probe would wait behind it.

import type { Clock } from '../../../lib/clock.ts'
import type { Timer, Timers } from './timers.ts'
import type { Transport, TransportCall, TransportFailure, TransportOptions } from './transport.ts'
import { openWsConnection, type WsConnection } from './ws-connection.ts'

const firstRetryMs = 100
const longestRetryMs = 5_000
// Beyond that calls wait in the pool, where another node can take them.
const maxInFlight = 1_000
/** How long the first connection serves all calls after a node has refused a second one. */
const refusedMs = 60_000

const unsent: TransportFailure = { failed: 'connect', detail: 'not connected' }

/** What connections to one node are made of. */
export type WsOptions = TransportOptions & {
  timers: Timers
  clock: Clock
  random(): number
  onOpen(): void
  /** Called with the parsed params of every push of the node. */
  onPush(params: unknown): void
}

/** WebSockets to a node; they connect again by themselves. */
export function createWsTransport(options: WsOptions): Transport {
  const { timers } = options
  let connection: WsConnection | undefined
  let retryMs = firstRetryMs
  let retryTimer: Timer | undefined
  let isStopped = false

  const connect = (): void => {
    connection = openWsConnection({
      ...options,
      onOpen: () => {
        retryMs = firstRetryMs
        options.onOpen()
      },
      onClose: (reason) => {
        connection = undefined
        options.onClose(reason)
        if (isStopped) return
        // Half of the pause is random, so that the processes of an installation do not connect at the same moment.
        retryTimer = timers.after(retryMs * (0.5 + options.random() / 2), connect)
        retryMs = Math.min(retryMs * 2, longestRetryMs)
      },
    })
  }

  const send = (call: TransportCall): void => {
    if (connection?.isOpen()) connection.send(call)
    else setImmediate(() => call.done(unsent))
  }
  const shortened = createShortenedCalls(options, send)

  connect()
  return {
    kind: 'ws',
    send: (call) => {
      // A node that is not there is not asked over the second connection either.
      if (call.longestString === undefined || !connection?.isOpen()) send(call)
      else shortened.send(call, call.longestString)
    },
    abandon: (detail) => {
      connection?.abandon(detail)
      shortened.abandon(detail)
    },
    isOpen: () => connection?.isOpen() === true,
    capacity: () => maxInFlight,
    stop: async () => {
      isStopped = true
      if (retryTimer) timers.cancel(retryTimer)
      connection?.end()
      shortened.stop()
    },
  }
}

/** Calls over a second connection, which is opened for the first of them, and again for the next one after it was lost. */
function createShortenedCalls(options: WsOptions, sendFirst: (call: TransportCall) => void) {
  const { clock } = options
  let connection: WsConnection | undefined
  /** It, and those that were replaced and still have calls. */
  const live = new Set<WsConnection>()
  let longest = 0
  let refusedUntil = Number.NEGATIVE_INFINITY
  let isStopped = false

  const open = (longestString: number): WsConnection => {
    longest = longestString
    const own = openWsConnection({
      ...options,
      longestString,
      onOpen: () => {},
      onPush: () => {},
      onClose: () => live.delete(own),
    })
    live.add(own)
    return own
  }

  const sendOver = (own: WsConnection, call: TransportCall): void => {
    const begun = clock.now()
    own.send({
      ...call,
      done: (outcome) => {
        const failed = 'failed' in outcome && !isStopped ? outcome.failed : undefined
        // No probe goes over this connection: it may be dead, or still bring what is not waited for any more.
        if (failed === 'timeout') leave(own)
        // The beginning of an answer is no refusal: over the first connection the whole of it would end that one as well.
        const isRefused = failed === 'connect' || (failed === 'closed' && !own.hasReceived())
        if (!isRefused) {
          call.done(outcome)
          return
        }
        // Not a failure of the node, whose first connection works: it may allow one connection only.
        if (own.isEnded()) refusedUntil = clock.now() + refusedMs
        sendFirst({ ...call, timeoutMs: Math.max(1, call.timeoutMs - (clock.now() - begun)) })
      },
    })
  }

  const leave = (own: WsConnection): void => {
    if (connection === own) connection = undefined
    own.retire()
  }

  return {
    send: (call: TransportCall, longestString: number): void => {
      const isThere = connection !== undefined && !connection.isEnded()
      if (!isThere && !isStopped && clock.now() >= refusedUntil) connection = open(longestString)
      // From the answers of a connection for shorter strings too much would be missing.
      if (connection && !connection.isEnded() && longestString <= longest)
        sendOver(connection, call)
      else sendFirst(call)
    },
    abandon: (detail: string): void => {
      for (const own of live) own.abandon(detail)
    },
    stop: (): void => {
      isStopped = true
      for (const own of live) own.end()
    },
  }
}
