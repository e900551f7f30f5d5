import type { Clock } from '../../lib/clock.ts'
import { createRateGate, type RateGate } from '../evm/pool/rate-gate.ts'
import { createIndexNode, type IndexNode } from './index-node.ts'
import { type RawBlockId, readBlockId, readHash, readRawHeader } from './raw.ts'
import { createToncenter, type Reply, type UpstreamOptions } from './toncenter.ts'

/** A node, and what was learned of it. */
export type Node = {
  name: string
  priority: number
  gate: RateGate
  /** Undefined until it has said what it is. */
  identity: string | undefined
  globalId: number | undefined
  head: RawBlockId | undefined
  /** Of another network: never asked again. */
  isForeign: boolean
  /** Left alone until then. */
  pausedUntil: number
  lastFailure: string
  /** Its API v3, where it may have one. */
  index: IndexNode | undefined
  call(method: string, params: object, signal: AbortSignal): Promise<Reply>
  /** Asks for its newest block; many at once are one question. */
  refresh(signal: AbortSignal): Promise<void>
  /** Its answer proved false. */
  accuse(): void
  stop(): Promise<void>
}

const firstPauseMs = 100
const longestPauseMs = 10_000
const liarPauseMs = 600_000
const headMs = 5_000

/** A node that is called within its limits and left alone for a while when it fails. */
export function createNode(
  options: UpstreamOptions,
  { clock, indexTimeoutMs }: { clock: Clock; indexTimeoutMs: number },
): Node {
  const client = createToncenter(options, { indexTimeoutMs })
  let pauseMs = firstPauseMs
  const stopping = new AbortController()
  const refresh = createShared((signal) =>
    learn(node, AbortSignal.any([signal, stopping.signal, AbortSignal.timeout(headMs)])),
  )
  const gate = createRateGate(options.requests_per_second)
  const node: Node = {
    name: client.name,
    priority: options.priority ?? 0,
    gate,
    index: client.get && createIndexNode(client.get, { clock, gate }),
    identity: undefined,
    globalId: undefined,
    head: undefined,
    isForeign: false,
    pausedUntil: 0,
    lastFailure: '',
    call: async (method, params, signal) => {
      node.gate.take(clock.now())
      const reply = await client.call(method, params, signal)
      if (reply.ok) {
        node.gate.relax()
        pauseMs = firstPauseMs
        node.lastFailure = ''
        return reply
      }
      const { failure } = reply
      node.lastFailure = failure.reason
      if (failure.kind === 'busy') node.gate.coolDown(clock.now(), failure.retryAfterMs)
      if (failure.kind === 'down') {
        node.pausedUntil = clock.now() + pauseMs
        pauseMs = Math.min(pauseMs * 2, longestPauseMs)
      }
      return reply
    },
    refresh,
    accuse: () => {
      node.lastFailure = 'returned an invalid response'
      node.pausedUntil = clock.now() + liarPauseMs
    },
    stop: async () => {
      stopping.abort(new Error('the chain is stopped'))
      await client.stop()
    },
  }
  return node
}

/** Asks a node for its head, and once for what it is. */
async function learn(node: Node, signal: AbortSignal): Promise<void> {
  const reply = await node.call('getMasterchainInfo', {}, signal)
  if (!reply.ok) throw new Error(reply.failure.reason)
  const { last, init } = (reply.result ?? {}) as { last?: unknown; init?: unknown }
  const head = readBlockId(last)
  const zero = readBlockId(init)
  if (!head || !zero) throw new Error('the masterchain info means nothing')
  if (node.identity === undefined) {
    const answer = await node.call('getBlockHeader', head, signal)
    const header = answer.ok ? readRawHeader(answer.result) : undefined
    if (!header) throw new Error('the header of its newest block means nothing')
    node.globalId = header.global_id
    node.identity = `ton:${header.global_id}:${readHash(zero.root_hash).toString('hex')}`
  }
  // A balancer may ask several servers: what one of them has told stays true.
  if (!node.head || head.seqno >= node.head.seqno) node.head = head
}

/** Work that all who want it at the same time share; it is given up when nobody waits any more. */
function createShared(work: (signal: AbortSignal) => Promise<void>) {
  let running: { promise: Promise<void>; waiting: number; own: AbortController } | undefined
  return async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted()
    if (!running) {
      const own = new AbortController()
      const begun = { promise: work(own.signal), waiting: 0, own }
      running = begun
      const end = () => {
        if (running === begun) running = undefined
      }
      begun.promise.then(end, end)
    }
    const mine = running
    mine.waiting++
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await Promise.race([mine.promise, aborted])
    } finally {
      signal.removeEventListener('abort', onAbort)
      if (--mine.waiting === 0) {
        mine.own.abort(new Error('nobody waits for it'))
        if (running === mine) running = undefined
      }
    }
  }
}
