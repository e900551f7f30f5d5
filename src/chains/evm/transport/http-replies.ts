import type { HttpConnections } from './http-connections.ts'
import type { HttpAnswer } from './http-exchange.ts'
import {
  matchReplies,
  type OneReply,
  type ScannedReply,
  scanBatch,
  scanOneReply,
  scanOneReplyInTurns,
} from './reply-scanner.ts'
import type { Timers } from './timers.ts'
import { badReply, type TransportCall, type TransportOutcome, toRequestText } from './transport.ts'

/** A call that was sent, by the id in its text. */
export type SentCall = { id: number; call: Pick<TransportCall, 'isWhole'> }

/** Whether the node refused the batch as such: it gave one error instead of a list. */
export const isRefusal = (body: Buffer): boolean => scanOneReply(body)?.ok === false

const probeTimeoutMs = 5_000

/** Sends a batch of two calls, and says whether the node answers it as one. */
export function takesBatches(
  connections: HttpConnections,
  timers: Timers,
  prefix: string,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const methods = [`${prefix}_chainId`, 'net_version']
  const calls = methods.map((method, index) => toRequestText(index + 1, { method, params: '[]' }))
  const exchange = connections.post(
    Buffer.from(`[${calls.join(',')}]`),
    { isUrgent: false },
    (answer) => {
      timers.cancel(timer)
      const replies = 'failed' in answer ? undefined : scanBatch(answer.body)
      resolve(replies !== undefined && matchReplies([1, 2], replies) !== undefined)
    },
  )
  const timer = timers.after(probeTimeoutMs, () => {
    exchange.abort()
    resolve(false)
  })
  return promise
}

/** The outcome of a call that was sent alone: at once, or after some turns of the event loop if it is long. */
export function readSingle(
  entry: SentCall,
  answer: HttpAnswer,
  done: (outcome: TransportOutcome) => void,
): void {
  if (answer.failure?.failed === 'rate_limited') done(answer.failure)
  else
    scanOneReplyInTurns(
      answer.body,
      () => entry.call.isWhole,
      (reply) => done(outcomeOf(entry, answer, reply)),
    )
}

function outcomeOf(
  entry: SentCall,
  { failure }: HttpAnswer,
  reply: OneReply | undefined,
): TransportOutcome {
  // A JSON-RPC error is an answer whatever status it came with.
  if (!reply || (failure && reply.ok)) return failure ?? badReply('not a JSON-RPC answer')
  if (reply.id !== entry.id) return failure ?? badReply('the id is not the one of the call')
  return reply.ok ? { ok: true, result: reply.raw } : { ok: false, error: reply.raw }
}

/** The replies to a batch, in the order of its calls; undefined when they are not its replies. */
export function readBatch(entries: readonly SentCall[], body: Buffer): ScannedReply[] | undefined {
  const replies = scanBatch(body)
  return (
    replies &&
    matchReplies(
      entries.map(({ id }) => id),
      replies,
    )
  )
}

/** Hands the replies to a batch to its calls. */
export function deliver<sent extends SentCall>(
  entries: readonly sent[],
  replies: readonly ScannedReply[],
  body: Buffer,
  finish: (entry: sent, outcome: TransportOutcome) => void,
): void {
  for (let index = 0; index < entries.length; index++) {
    const { ok, from, to } = replies[index]!
    // Cut from the bytes: a part of the text would keep the whole batch in memory.
    const raw = body.toString('latin1', from, to)
    finish(entries[index]!, ok ? { ok, result: raw } : { ok, error: raw })
  }
}
