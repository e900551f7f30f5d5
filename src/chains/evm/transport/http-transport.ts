import type { RawJson } from '../pool/pool-types.ts'
import type { HttpAnswer, HttpExchange } from './http-exchange.ts'
import { createHttpLanes } from './http-lanes.ts'
import { deliver, isRefusal, readBatch, readSingle, takesBatches } from './http-replies.ts'
import { isBatchRefusal } from './http-status.ts'
import { createLoadWindow } from './load-window.ts'
import { scanOneReply } from './reply-scanner.ts'
import { createStuckLimit } from './stuck-limit.ts'
import type { Timer, Timers } from './timers.ts'
import {
  lateAfter,
  type Transport,
  type TransportCall,
  type TransportFailure,
  type TransportOptions,
  type TransportOutcome,
  toRequestText,
} from './transport.ts'

/** A transport that joins the calls of one event-loop turn. */
export type HttpTransport = Transport & {
  /** Finds out whether the node takes batches; until then there are none. */
  probeBatch(): Promise<void>
  batchLimit(): number
}

const maxConnections = 64
// While all of them are under way the calls wait and make the next batch larger.
const maxBatchExchanges = 16
// As many as one call of the query API asks for.
const largestBatch = 100
const maxBatchBytes = 256 * 1024
// A large or slow call would make its neighbours in a batch wait.
const maxJoinedBytes = 32 * 1024
const slowMethods =
  /^(?:debug|trace|ots|txpool)_|_(?:getLogs|getFilterLogs|simulateV1|getProof|getBlockReceipts)$/

const isQuick = ({ method, idempotent, longestString }: TransportCall): boolean =>
  idempotent && longestString === undefined && !slowMethods.test(method)

type Entry = {
  call: TransportCall
  text: string
  id: number
  timer: Timer
  exchange: Exchange | undefined
  isOver: boolean
}

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

const questionId = 1

const chainQuestion = (prefix: string) => ({ method: `${prefix}_chainId`, params: '[]' })

/** Keep-alive HTTP to one node. */
export function createHttpTransport(
  options: TransportOptions & {
    timers: Timers
    now(): number
    prefix: string
    /** Whether the answer of a node to the question for its chain id is the right one. */
    isRightChain(result: RawJson): boolean
  },
): HttpTransport {
  const { url, timers } = options
  const lanes = createHttpLanes({
    origin: url.origin,
    connectTimeoutMs: options.connectTimeoutMs,
    target: {
      path: `${url.pathname}${url.search}`,
      headers: { 'content-type': 'application/json', ...options.headers },
      maxReplyBytes: options.maxReplyBytes,
      now: options.now,
    },
    question: Buffer.from(toRequestText(questionId, chainQuestion(options.prefix))),
    isRight: ({ body, failure }) => {
      const reply = failure ? undefined : scanOneReply(body)
      const isAnswer = reply?.ok === true && reply.id === questionId
      return isAnswer && options.isRightChain(body.toString('latin1', reply.from, reply.to))
    },
    onClose: options.onClose,
  })
  const urgent: Entry[] = []
  const joined: Entry[] = []
  const single: Entry[] = []
  // No Set: the dead tables of one that changes all the time keep what was in it alive for long.
  const exchanges: Exchange[] = []
  const window = createLoadWindow()
  let inFlight = 0
  let batchExchanges = 0
  let batchLimit = 1
  let lastId = questionId
  let isFlushing = false
  const stuckLimit = createStuckLimit(options.now)

  const finish = (entry: Entry, outcome: TransportOutcome): void => {
    if (entry.isOver) return
    entry.isOver = true
    inFlight--
    timers.cancel(entry.timer)
    entry.call.done(outcome)
  }

  // The exchange continues while any caller waits for a part of it.
  // A call that is late frees its caller at once. Its answer is ignored when it comes.
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
    window.add({ calls: entries.length, startedAt, now: options.now(), inFlight })

  const findStuck = (exchange: Exchange): void => {
    stuckLimit.exceeded(exchange.startedAt)
    judge(exchange)
    const late = lateAfter(options.now() - exchange.startedAt)
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
    if (exchange.isBatch) batchExchanges--
    if (joined.length > 0 || single.length > 0) scheduleFlush()
  }

  const scheduleFlush = (): void => {
    if (isFlushing) return
    isFlushing = true
    // At the end of the turn, so that calls made in one turn form one batch.
    setImmediate(flush)
  }

  const flush = (): void => {
    isFlushing = false
    for (const entry of urgent.splice(0)) start([entry], false)
    while (single.length > 0 && exchanges.length < maxConnections) {
      const entry = single.shift()!
      if (!entry.isOver) start([entry], false)
    }
    while (joined.length > 0 && batchExchanges < maxBatchExchanges) {
      const batch = takeBatch()
      if (batch.length > 0) start(batch, true)
    }
  }

  const takeBatch = (): Entry[] => {
    const batch: Entry[] = []
    let bytes = 0
    let taken = 0
    for (const entry of joined) {
      if (batch.length === batchLimit || bytes > maxBatchBytes) break
      taken++
      if (entry.isOver) continue
      bytes += entry.text.length
      batch.push(entry)
    }
    joined.splice(0, taken)
    return batch
  }

  const start = (entries: Entry[], isBatch: boolean): void => {
    const text =
      entries.length === 1 ? entries[0]!.text : `[${entries.map(({ text }) => text).join(',')}]`
    const exchange: Exchange = {
      place: exchanges.length,
      entries,
      waiting: entries.length,
      isBatch,
      startedAt: options.now(),
      http: idle,
      stuck: undefined,
    }
    // Slow methods have no usual time, so that nothing is known from theirs.
    if (entries.every(({ call }) => isQuick(call)))
      exchange.stuck = timers.after(stuckLimit.ms(), () => findStuck(exchange))
    exchanges.push(exchange)
    if (isBatch) batchExchanges++
    for (const entry of entries) entry.exchange = exchange
    const isUrgent = entries[0]!.call.isUrgent === true
    // Calls whose answers are cut are expensive ones, which are never joined.
    const { longestString } = entries[0]!.call
    const manner = { isUrgent, longestString }
    exchange.http = lanes.post(Buffer.from(text, 'latin1'), manner, (answer) => {
      if (exchange.place < 0) return
      if (exchange.stuck && !('failed' in answer)) {
        stuckLimit.answered(options.now() - exchange.startedAt)
        judge(exchange)
      }
      receive(exchange, answer)
      end(exchange)
    })
  }

  const receive = ({ entries }: Exchange, answer: HttpAnswer | TransportFailure): void => {
    if (entries.length > 1) receiveBatch(entries, answer)
    else finish(entries[0]!, 'failed' in answer ? answer : readSingle(entries[0]!, answer))
  }

  const receiveBatch = (entries: Entry[], answer: HttpAnswer | TransportFailure): void => {
    if ('failed' in answer) {
      // One of the answers is too much; alone, the others are not.
      if (answer.failed === 'too_large') makeSingle(entries)
      else for (const entry of entries) finish(entry, answer)
      return
    }
    const replies = answer.failure ? undefined : readBatch(entries, answer.body)
    if (replies) deliver(entries, replies, answer.body, finish)
    else if (isBatchRefusal(answer.status) || isRefusal(answer.body)) {
      // Halved until the node accepts; a later probe allows batches again.
      batchLimit = entries.length >> 1 || 1
      makeSingle(entries)
    } else if (answer.failure) {
      for (const entry of entries) finish(entry, answer.failure)
    } else {
      // Sent one by one, the calls show whether only the batch was the problem.
      makeSingle(entries)
    }
  }

  const makeSingle = (entries: Entry[]): void => {
    for (const entry of entries) {
      entry.exchange = undefined
      if (!entry.isOver) single.push(entry)
    }
    scheduleFlush()
  }

  return {
    kind: 'http',
    send: (call) => {
      const id = ++lastId
      inFlight++
      const entry: Entry = {
        call,
        text: toRequestText(id, call),
        id,
        timer: timers.after(call.timeoutMs, () =>
          giveUp(entry, entry.exchange ? lateAfter(call.timeoutMs) : neverSent),
        ),
        exchange: undefined,
        isOver: false,
      }
      const isJoined = batchLimit > 1 && entry.text.length <= maxJoinedBytes && isQuick(call)
      if (call.isUrgent) urgent.push(entry)
      else if (isJoined) joined.push(entry)
      else single.push(entry)
      scheduleFlush()
    },
    abandon: (detail) => {
      const waiting = [...joined, ...single, ...exchanges.flatMap(({ entries }) => entries)]
      // A transaction that was sent cannot be taken back: its caller waits for the answer.
      for (const entry of waiting)
        if (entry.call.idempotent) giveUp(entry, { failed: 'stalled', detail })
    },
    probeBatch: async () => {
      const isTaken = await takesBatches(lanes, timers, options.prefix)
      if (!isTaken) batchLimit = 1
      else if (batchLimit === 1) batchLimit = largestBatch
    },
    batchLimit: () => batchLimit,
    isOpen: lanes.isOpen,
    capacity: () =>
      Math.min(window.size(), batchLimit > 1 ? maxBatchExchanges * batchLimit : 2 * maxConnections),
    stop: lanes.stop,
  }
}

const neverSent: TransportFailure = { failed: 'queued', detail: 'never got its turn' }

const idle: HttpExchange = { abort() {} }
