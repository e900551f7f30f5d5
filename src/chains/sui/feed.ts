// The stream of new checkpoints. It is bounded and may lose checkpoints: the follower notices a hole by the numbers and fetches it,
// so that a slow database never makes memory grow.

import type { GrpcTypes } from '@mysten/sui/grpc'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { toHeader } from './checkpoint.ts'
import type { SuiNode, SuiNodes } from './nodes.ts'

/** A checkpoint and the node that gave it. */
export type Given = { checkpoint: GrpcTypes.Checkpoint; node: SuiNode }

/** The newest checkpoints as a node streams them. */
export type Feed = {
  /** Consecutive ones from this number on, as many as are there; those before it are forgotten. */
  take(next: number, most: number): Given[]
  /** The lowest number that is there beyond this one. */
  firstAfter(number: number): number | undefined
  /** Waits for the next one, at most so long. */
  news(ms: number, signal: AbortSignal): Promise<void>
  /** Forgets what is there: it came from a node that is not trusted any more. */
  clear(): void
  stop(): Promise<void>
}

// Checkpoints come four a second: this bridges a pause of the writer of about a minute.
const mostKept = 200
const mostTransactions = 20_000
const firstPauseMs = 100
const longestPauseMs = 5_000
/** Beyond this a stream is left for the node that is ahead of it. */
const lagLimit = 60

/**
 * Keeps a stream open at the best node. Nodes close their streams every few hours, or when a reader
 * is slow: another one is opened, and the follower fetches the checkpoints in between. A stream that says
 * nothing for a while is treated as dead. Unread checkpoints are dropped, the oldest first.
 */
export function startFeed(options: {
  nodes: SuiNodes
  clock: Clock
  log: Log
  stallMs: number
}): Feed {
  const { nodes, clock, log, stallMs } = options
  const stopping = new AbortController()
  const kept = new Map<number, Given>()
  let transactions = 0
  let heard = Promise.withResolvers<void>()

  const forget = (number: number): void => {
    transactions -= kept.get(number)?.checkpoint.transactions.length ?? 0
    kept.delete(number)
  }
  const keep = (given: Given): void => {
    const number = Number(given.checkpoint.sequenceNumber ?? -1n)
    nodes.showHead(given.node, number)
    given.node.streamed = number
    forget(number)
    kept.set(number, given)
    transactions += given.checkpoint.transactions.length
    for (const oldest of kept.keys()) {
      if ((kept.size <= mostKept && transactions <= mostTransactions) || kept.size === 1) break
      forget(oldest)
    }
    heard.resolve()
  }

  /** Reads one stream to its end; says whether it gave anything. */
  const read = async (node: SuiNode): Promise<boolean> => {
    const own = new AbortController()
    const end = () => own.abort(stopping.signal.reason)
    stopping.signal.addEventListener('abort', end)
    const stalled = setTimeout(
      () => own.abort(new Error(`the stream was silent for ${stallMs} ms`)),
      stallMs,
    )
    let count = 0
    try {
      for await (const checkpoint of node.client.subscribe(own.signal)) {
        // Nonsense is the node's failure: another one is asked.
        toHeader(checkpoint)
        count++
        stalled.refresh()
        keep({ checkpoint, node })
        if (count === 1) nodes.succeed(node)
        if (node.isForked) break
        if (nodes.best() - node.head > lagLimit) throw new Error('the node lags')
      }
      own.signal.throwIfAborted()
      log.debug({ node: node.name, checkpoints: count }, 'stream of checkpoints ended')
    } catch (error) {
      if (!stopping.signal.aborted) nodes.fail(node, own.signal.aborted ? own.signal.reason : error)
    } finally {
      clearTimeout(stalled)
      stopping.signal.removeEventListener('abort', end)
      node.streamed = undefined
      own.abort()
    }
    return count > 0
  }
  const run = async (): Promise<void> => {
    let pauseMs = firstPauseMs
    while (!stopping.signal.aborted) {
      const [node] = nodes.choose({ full: true })
      const gave = node ? await read(node) : false
      if (stopping.signal.aborted) return
      pauseMs = gave ? firstPauseMs : Math.min(pauseMs * 2, longestPauseMs)
      await clock.sleep(pauseMs, stopping.signal).catch(() => {})
    }
  }
  const running = run()

  return {
    take: (next, most) => {
      for (const number of kept.keys()) if (number < next) forget(number)
      const taken: Given[] = []
      for (let number = next; taken.length < most; number++) {
        const given = kept.get(number)
        if (!given) break
        taken.push(given)
        forget(number)
      }
      return taken
    },
    firstAfter: (number) => {
      let first: number | undefined
      for (const one of kept.keys())
        if (one > number && (first === undefined || one < first)) first = one
      return first
    },
    news: async (ms, signal) => {
      const waiting = new AbortController()
      const slept = clock.sleep(ms, AbortSignal.any([signal, waiting.signal])).catch(() => {})
      await Promise.race([heard.promise, slept])
      waiting.abort()
      heard = Promise.withResolvers()
      signal.throwIfAborted()
    },
    clear: () => {
      kept.clear()
      transactions = 0
    },
    stop: async () => {
      stopping.abort(new Error('following ended'))
      await running
    },
  }
}
