import type { HttpConnections } from './http-connections.ts'
import type { HttpAnswer, HttpExchange } from './http-exchange.ts'
import { createLoadWindow } from './load-window.ts'
import type { Timer, Timers } from './timers.ts'
import {
  lateAfter,
  type TransportCall,
  type TransportFailure,
  type TransportOutcome,
} from './transport.ts'

/** A call that waits for its turn or for its answer. */
export type Entry = {
  call: TransportCall
  text: string
  id: number
  timer: Timer
  exchange: Exchange | undefined
  isOver: boolean
}

/** One POST under way, with one call or a batch. */
type Exchange = {
  /** Among those under way; -1 when it is over. */
  place: number
  entries: Entry[]
  waiting: number
  isBatch: boolean
  startedAt: number
  http: HttpExchange
  stuck: Timer | undefined
}

/** The exchanges under way with one node. */
export type HttpExchanges = {
  start(entries: Entry[], isBatch: boolean): void
  /** Counts a call, until it is finished. */
  add(): void
  finish(entry: Entry, outcome: TransportOutcome): void
  /** Ends a call without its answer, which is ignored when it comes. */
  giveUp(entry: Entry, failure: TransportFailure): void
  size(): number
  batches(): number
  /** How many calls the node gets at once. */
  window(): number
  entries(): Entry[]
}

// What these take depends on the request: an average of their times means nothing, and a slow one is not stuck.
const slowMethods =
  /^(?:debug|trace|ots|txpool)_|_(?:getLogs|getFilterLogs|simulateV1|getProof|getBlockReceipts)$/

/** Whether the node is expected to answer the call in its usual time. */
export const isQuick = ({ method, idempotent, longestString }: TransportCall): boolean =>
  idempotent && longestString === undefined && !slowMethods.test(method)

// An exchange that takes so much longer than usual is stuck.
const stuckFactor = 8
const shortestMs = 2_000
const longestMs = 10_000

/** Keeps the exchanges. One that takes far longer than usual counts as stuck and is given up. */
export function createHttpExchanges(options: {
  connections: HttpConnections
  timers: Timers
  now(): number
  /** Ends the calls of an exchange that was answered or has failed. */
  received(entries: Entry[], answer: HttpAnswer | TransportFailure): void
  /** An exchange has ended: there is room for another. */
  ended(): void
}): HttpExchanges {
  const { connections, timers, now } = options
  // No Set: the dead tables of one that changes all the time keep what was in it alive for long.
  const exchanges: Exchange[] = []
  const window = createLoadWindow()
  const stuckLimit = createStuckLimit(now)
  let inFlight = 0
  let batches = 0

  const finish = (entry: Entry, outcome: TransportOutcome): void => {
    if (entry.isOver) return
    entry.isOver = true
    inFlight--
    timers.cancel(entry.timer)
    entry.call.done(outcome)
  }

  // The exchange continues while any caller waits for a part of it.
  const giveUp = (entry: Entry, failure: TransportFailure): void => {
    if (entry.isOver) return
    const { exchange } = entry
    finish(entry, failure)
    if (exchange && --exchange.waiting === 0) {
      exchange.http.abort()
      end(exchange)
    }
  }

  const judge = ({ entries, startedAt }: Exchange): void =>
    window.add({ calls: entries.length, startedAt, now: now(), inFlight })

  const findStuck = (exchange: Exchange): void => {
    stuckLimit.exceeded(exchange.startedAt)
    judge(exchange)
    const late = lateAfter(now() - exchange.startedAt)
    for (const entry of [...exchange.entries]) giveUp(entry, late)
  }

  const end = (exchange: Exchange): void => {
    if (exchange.place < 0) return
    // Removed by moving the last one into its place: constant time, and the array never has holes.
    const last = exchanges.pop()!
    if (last !== exchange) {
      exchanges[exchange.place] = last
      last.place = exchange.place
    }
    exchange.place = -1
    // Cut, so that whatever still holds the exchange keeps no calls alive.
    exchange.entries = []
    exchange.http = idle
    if (exchange.stuck) timers.cancel(exchange.stuck)
    if (exchange.isBatch) batches--
    options.ended()
  }

  const receive = (exchange: Exchange, answer: HttpAnswer | TransportFailure): void => {
    if (exchange.place < 0) return
    if (exchange.stuck && !('failed' in answer)) {
      stuckLimit.answered(now() - exchange.startedAt)
      judge(exchange)
    }
    options.received(exchange.entries, answer)
    end(exchange)
  }

  const start = (entries: Entry[], isBatch: boolean): void => {
    const text =
      entries.length === 1 ? entries[0]!.text : `[${entries.map(({ text }) => text).join(',')}]`
    const exchange: Exchange = {
      place: exchanges.length,
      entries,
      waiting: entries.length,
      isBatch,
      startedAt: now(),
      http: idle,
      stuck: undefined,
    }
    // Slow methods have no usual time, so that nothing is known from theirs.
    if (entries.every(({ call }) => isQuick(call)))
      exchange.stuck = timers.after(stuckLimit.ms(), () => findStuck(exchange))
    exchanges.push(exchange)
    if (isBatch) batches++
    for (const entry of entries) entry.exchange = exchange
    const isUrgent = entries[0]!.call.isUrgent === true
    // Calls whose answers are cut are expensive ones, which are never joined.
    const { longestString } = entries[0]!.call
    exchange.http = connections.post(
      Buffer.from(text, 'latin1'),
      { isUrgent, longestString },
      (answer) => receive(exchange, answer),
    )
  }

  return {
    start,
    add: () => {
      inFlight++
    },
    finish,
    giveUp,
    size: () => exchanges.length,
    batches: () => batches,
    window: window.size,
    entries: () => exchanges.flatMap(({ entries }) => entries),
  }
}

const idle: HttpExchange = { abort() {} }

/** How long an exchange of quick calls may take before it counts as stuck. */
type StuckLimit = {
  ms(): number
  /** An exchange was answered after so long. */
  answered(ms: number): void
  /** An exchange that began then took longer than the limit. */
  exceeded(startedAt: number): void
}

/** The limit follows the usual time of the node. It doubles when exceeded: a busy node is slow, not gone. */
function createStuckLimit(now: () => number): StuckLimit {
  let usualMs = 0
  let patienceMs = shortestMs
  let patienceSince = 0
  return {
    ms: () => Math.min(Math.max(usualMs * stuckFactor, patienceMs), longestMs),
    answered: (ms) => {
      usualMs += (ms - usualMs) * 0.1
      patienceMs = shortestMs
    },
    exceeded: (startedAt) => {
      // Exchanges that were under way together count once.
      if (startedAt < patienceSince) return
      patienceMs = Math.min(patienceMs * 2, longestMs)
      patienceSince = now()
    },
  }
}
