import type { RawJson } from '../pool/pool-types.ts'
import { createHttpConnections, type HttpConnections } from './http-connections.ts'
import type { HttpAnswer } from './http-exchange.ts'
import { createHttpExchanges, type Entry, type HttpExchanges } from './http-exchanges.ts'
import { createHttpQueue, type HttpQueue } from './http-queue.ts'
import { deliver, isRefusal, readBatch, readSingle, takesBatches } from './http-replies.ts'
import { isBatchRefusal } from './http-status.ts'
import { scanOneReply } from './reply-scanner.ts'
import type { Timers } from './timers.ts'
import {
  lateAfter,
  type Transport,
  type TransportFailure,
  type TransportOptions,
  toRequestText,
} from './transport.ts'

/** A transport that joins the calls of one event-loop turn. */
export type HttpTransport = Transport & {
  /** Finds out whether the node takes batches; until then there are none. */
  probeBatch(): Promise<void>
  batchLimit(): number
}

type HttpTransportOptions = TransportOptions & {
  timers: Timers
  now(): number
  prefix: string
  /** Whether the answer of a node to the question for its chain id is the right one. */
  isRightChain(result: RawJson): boolean
}

// As many as one call of the query API asks for.
const largestBatch = 100

// The id of the question for the chain. Calls count from 2 on.
const questionId = 1

/** Keep-alive HTTP to one node. */
export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  const { timers, prefix } = options
  const connections = openConnections(options)
  const queue: HttpQueue = createHttpQueue(() => exchanges)
  const exchanges: HttpExchanges = createHttpExchanges({
    ...{ connections, timers, now: options.now, ended: queue.wake },
    received: (entries, answer) => {
      if (entries.length > 1) receiveBatch(entries, answer, { queue, finish: exchanges.finish })
      else {
        const entry = entries[0]!
        if ('failed' in answer) exchanges.finish(entry, answer)
        else readSingle(entry, answer, (outcome) => exchanges.finish(entry, outcome))
      }
    },
  })
  let lastId = questionId

  return {
    kind: 'http',
    send: (call) => {
      const id = ++lastId
      exchanges.add()
      const entry: Entry = {
        // The text is made now: the same call may wait, be joined to a batch, and be sent alone after that.
        call,
        text: toRequestText(id, call),
        id,
        timer: timers.after(call.timeoutMs, () =>
          exchanges.giveUp(entry, entry.exchange ? lateAfter(call.timeoutMs) : neverSent),
        ),
        exchange: undefined,
        isOver: false,
      }
      queue.push(entry)
    },
    abandon: (detail) => {
      // A transaction that was sent cannot be taken back: its caller waits for the answer.
      for (const entry of [...queue.entries(), ...exchanges.entries()])
        if (entry.call.idempotent) exchanges.giveUp(entry, { failed: 'stalled', detail })
    },
    probeBatch: async () => {
      // A limit that was halved by refusals stays until a probe succeeds again.
      const isTaken = await takesBatches(connections, timers, prefix)
      if (!isTaken) queue.setBatchLimit(1)
      else if (queue.batchLimit() === 1) queue.setBatchLimit(largestBatch)
    },
    batchLimit: queue.batchLimit,
    isOpen: connections.isOpen,
    capacity: queue.capacity,
    stop: connections.stop,
  }
}

/** The connections. Each one is asked for the chain id before anything else. */
function openConnections(options: HttpTransportOptions): HttpConnections {
  const { url, prefix } = options
  const question = toRequestText(questionId, { method: `${prefix}_chainId`, params: '[]' })
  return createHttpConnections({
    origin: url.origin,
    connectTimeoutMs: options.connectTimeoutMs,
    target: {
      path: `${url.pathname}${url.search}`,
      headers: { 'content-type': 'application/json', ...options.headers },
      maxReplyBytes: options.maxReplyBytes,
      now: options.now,
    },
    question: Buffer.from(question),
    isRight: ({ body, failure }) => {
      const reply = failure ? undefined : scanOneReply(body)
      const isAnswer = reply?.ok === true && reply.id === questionId
      return isAnswer && options.isRightChain(reply.raw)
    },
    onClose: options.onClose,
  })
}

/** Hands the answers of a batch to its calls. Calls without one are sent again, each alone. */
function receiveBatch(
  entries: Entry[],
  answer: HttpAnswer | TransportFailure,
  { queue, finish }: { queue: HttpQueue; finish: HttpExchanges['finish'] },
): void {
  if ('failed' in answer) {
    // One of the answers is too much; alone, the others are not.
    if (answer.failed === 'too_large') queue.pushSingle(entries)
    else for (const entry of entries) finish(entry, answer)
    return
  }
  const replies = answer.failure ? undefined : readBatch(entries, answer.body)
  if (replies) deliver(entries, replies, answer.body, finish)
  else if (isBatchRefusal(answer.status) || isRefusal(answer.body)) {
    // Halved until the node accepts; a later probe allows batches again.
    queue.setBatchLimit(entries.length >> 1 || 1)
    queue.pushSingle(entries)
  } else if (answer.failure) {
    for (const entry of entries) finish(entry, answer.failure)
  } else {
    // Sent one by one, the calls show whether only the batch was the problem.
    queue.pushSingle(entries)
  }
}

const neverSent: TransportFailure = { failed: 'queued', detail: 'never got its turn' }
