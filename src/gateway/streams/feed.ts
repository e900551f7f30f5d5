// The stream of one network that all subscriptions and filters read. It runs while there is a listener and `lingerMs`
// longer, so that a client that reconnects can resume from the block that it saw last.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Head, Pool } from '../../chains/evm/pool/pool-types.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { createReplay, type Replay } from './feed-replay.ts'
import {
  blocksAhead,
  createFeedSender,
  type FeedSink,
  firstRetryMs,
  lastRetryMs,
} from './feed-send.ts'
import { createFeedBlocks, createFeedSource, type FeedBounds } from './feed-source.ts'

/** The canonical chain of one network as a stream of events without a gap. */
export type Feed = {
  /** The order of the last header that was sent; what comes later has a higher one. */
  order(): number
  /** Until the returned function is called, headers (and logs) are followed. */
  need(what: 'headers' | 'logs'): () => void
  /**
   * Whether it is known where the feed begins: what comes later is sent. While no node has shown a head,
   * a promise of that, false when it took too long.
   */
  begun(): true | Promise<boolean>
  /**
   * Calls `deliver` with all that happened since a block, at a moment when nothing lies between that
   * and the next event; false when the block is not known any more.
   */
  replay: Replay
  tip(): Head | undefined
  stop(): void
}

/** How to build a feed. */
export type FeedOptions = Partial<FeedBounds> & {
  pool: Pool
  canonical: Canonical
  prefix: string
  clock: Clock
  log: Log
  sink: FeedSink
  /** How long the chain is followed after the last listener has left. */
  lingerMs?: number
}

// A change of the canonical chain wakes the feed; the tick retries what failed and extends the window.
const tickMs = 250
// A window of 256 blocks is read within four seconds of the first subscription, without a burst of
// requests.
const deepenPerTick = 16
const firstHeadMs = 5_000

/**
 * Follows the canonical chain. The choice of the branch and the moment of a switch are the canonical
 * chain's; the feed fetches headers and logs and sends every change in order.
 */
export function createFeed(options: FeedOptions): Feed {
  const { canonical, clock, log, sink } = options
  const { windowSize = 256, maxGap = 1_024, lingerMs = 30_000 } = options
  const { maxLogBytes = 67_108_864 } = options
  const stopped = new AbortController()
  const { signal } = stopped
  const users = { headers: 0, logs: 0 }
  const bounds = { windowSize, maxGap, maxLogBytes }
  const blocks = createFeedBlocks(createFeedSource(options), canonical, bounds)
  const sender = createFeedSender({
    ...{ blocks, canonical, clock, log, sink, signal },
    wantsLogs: () => users.logs > 0,
  })
  /** The last block that was sent, or where the feed began. */
  let tip: Head | undefined
  /** Whether anything was sent since the feed began. */
  let hasSent = false
  let isRunning = false
  let unusedSince = 0
  let isTicking = false

  const isUsed = () => users.headers + users.logs > 0

  const pathTo = (from: Head, head: Head) => {
    // Too far behind to send every block: clients start over, which is what the protocol has for
    // it.
    if (head.number - from.number > maxGap) return undefined
    const path = canonical.pathFrom(from.hash)
    // Nothing was sent yet, and no height is left out.
    const isWhole = !hasSent && head.number <= from.number + 1
    return path ?? (isWhole ? { removed: [], added: [head] } : undefined)
  }

  /** Sends the way from the last block that was sent to the head; false when it must be tried again. */
  const follow = async (from: Head, head: Head): Promise<boolean> => {
    const path = pathTo(from, head)
    if (!path) {
      log.warn({ from: from.number, to: head.number }, 'streams restart: chain could not be linked')
      blocks.forget()
      tip = head
      hasSent = false
      sink.lost('The chain cannot be followed back to what was sent before.', 'chain')
      return true
    }
    // Headers of several blocks at once; they are sent in order after all of them are known.
    const added = path.added.map(blocks.of)
    for (let at = 0; at < added.length; at += blocksAhead) {
      const some = added.slice(at, at + blocksAhead)
      const found = await Promise.all(some.map((block) => blocks.complete(block, head.number)))
      if (signal.aborted || found.includes(false)) return false
    }
    // The chain may have moved meanwhile, so that this is not the way any more.
    const rest = canonical.pathFrom(head.hash)
    if (!rest || rest.removed.length > 0 || tip !== from) return true
    tip = head
    hasSent = true
    await sender.send(path.removed.map(blocks.of), added)
    blocks.prune(head)
    return true
  }

  const run = async () => {
    isRunning = true
    let retryMs = firstRetryMs
    try {
      // Follows on for a while after the last listener has left, so that a client that reconnects
      // can resume.
      while (isUsed() || clock.now() - unusedSince < lingerMs) {
        const head = canonical.head()
        tip ??= head
        if (!tip || !head || tip.hash === head.hash || signal.aborted) break
        if (await follow(tip, head)) retryMs = firstRetryMs
        else {
          retryMs = Math.min(retryMs * 2, lastRetryMs)
          await clock.sleep(retryMs, signal)
        }
      }
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'the feed failed')
    } finally {
      isRunning = false
    }
  }

  /** Looks again from time to time, and learns of older blocks while there are listeners. */
  const tick = async () => {
    isTicking = true
    while (!signal.aborted) {
      await clock.sleep(tickMs, signal).catch(() => {})
      if (!isUsed() && clock.now() - unusedSince >= lingerMs && !isRunning) break
      wake()
      for (let left = deepenPerTick; left > 0 && isUsed() && !isRunning; left--)
        if (!(await blocks.deepen().catch(() => false))) break
    }
    isTicking = false
    if (isUsed()) return
    tip = undefined
    hasSent = false
    blocks.forget()
  }

  // A subscription is answered when it is known where it begins; without that a block could be
  // missed.
  const waitForHead = async (): Promise<boolean> => {
    const deadline = clock.now() + firstHeadMs
    while (!tip && clock.now() < deadline && !signal.aborted) {
      await clock.sleep(firstRetryMs, signal).catch(() => {})
      wake()
    }
    return tip !== undefined
  }

  const wake = () => {
    if (!isRunning && !signal.aborted && isTicking) void run()
  }
  const unsubscribe = canonical.onChange(wake)

  return {
    order: sender.order,
    need(what) {
      users[what]++
      if (!isTicking) void tick()
      wake()
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        users[what]--
        if (!isUsed()) unusedSince = clock.now()
      }
    },
    begun: () => tip !== undefined || waitForHead(),
    replay: createReplay({
      ...{ blocks, canonical, clock, signal },
      isAtHead: () => tip && !isRunning && tip.hash === canonical.head()?.hash,
    }),
    tip: () => tip,
    stop() {
      stopped.abort(new Error('stopped'))
      unsubscribe()
    },
  }
}
