// Subscriptions and filters of the gateway. One feed per network reads the canonical chain and fetches each
// block once for all clients. It uses `chains/evm/canonical`, the pool and `lib`. It guarantees that all
// clients of a network see the same order of heads, logs and removals, that a slow client is closed instead of
// buffered without bound, and that nothing is fetched without a subscriber.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Head, Pool } from '../../chains/evm/pool/pool-types.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { bareBlock, type FeedBlock, type FeedLog } from './feed-block.ts'
import { createFeedSource, type FeedSource } from './feed-source.ts'

/** What the feed sends, in this order for every change of the chain. */
export type FeedSink = {
  /** Blocks that left the chain, oldest first, and those that take their place. */
  removed(blocks: readonly FeedBlock[], added: readonly FeedBlock[]): void
  header(block: FeedBlock): void
  logs(block: FeedBlock, logs: readonly FeedLog[]): void
  /** There is a gap in the chain, or in its logs alone: listeners must start over. */
  lost(reason: string, what: 'chain' | 'logs'): void
}

/** The way from a block to the head, for a client that saw that block last. */
export type FeedPath = { removed: FeedBlock[]; added: FeedBlock[] }

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
  replay(hash: string, withLogs: boolean, deliver: (path: FeedPath) => void): Promise<boolean>
  tip(): Head | undefined
  stop(): void
}

/** How to build a feed. */
export type FeedOptions = {
  pool: Pool
  canonical: Canonical
  prefix: string
  clock: Clock
  log: Log
  sink: FeedSink
  source?: FeedSource
  windowSize?: number
  /** Blocks that may be caught up with after the feed fell behind. */
  maxGap?: number
  /** How long the chain is followed after the last listener has left. */
  lingerMs?: number
  /** Bytes of logs that are kept for removals. */
  maxLogBytes?: number
}

const tickMs = 250
const firstRetryMs = 25
const lastRetryMs = 1_000
const blocksAhead = 4
const deepenPerTick = 16
const firstHeadMs = 5_000
/** Headers wait for the logs of the block before, but not for ever. */
const maxLogsMs = 30_000
/** Below the order of everything that was sent to all: of blocks that were only replayed. */
const replayedOrder = 0.5

/**
 * Follows the canonical chain. The choice of the branch and the moment of a switch are the canonical
 * chain's; the feed fetches headers and logs and sends every change in order.
 */
export function createFeed(options: FeedOptions): Feed {
  const { canonical, clock, log, sink } = options
  const { windowSize = 256, maxGap = 1_024, lingerMs = 30_000 } = options
  const { maxLogBytes = 67_108_864 } = options
  const source = options.source ?? createFeedSource(options)
  const stopped = new AbortController()
  const users = { headers: 0, logs: 0 }
  /** What is known of blocks, by hash. */
  const blocks = new Map<string, FeedBlock>()
  /** The last block that was sent, or where the feed began. */
  let tip: Head | undefined
  /** Whether anything was sent since the feed began. */
  let hasSent = false
  let order = 1
  let isRunning = false
  let unusedSince = 0
  let isTicking = false
  let logBytes = 0
  const kept: FeedBlock[] = []

  const isUsed = () => users.headers + users.logs > 0

  const blockOf = (head: Head): FeedBlock => {
    const known = blocks.get(head.hash)
    if (known) return known
    const block = bareBlock(head)
    blocks.set(head.hash, block)
    return block
  }

  /** Fetches the header of a block where it is not known; false when no node has it now. */
  const complete = async (block: FeedBlock, minBlock?: number): Promise<boolean> => {
    if (block.header !== '') return true
    const found = await source.block(block.hash, minBlock)
    if (!found || found.number !== block.number) return false
    const { header, bloom, transactions } = found
    Object.assign(block, { header, bloom, transactions })
    return true
  }

  const prune = (head: Head) => {
    if (blocks.size <= 2 * windowSize) return
    for (const [hash, { number }] of blocks)
      if (number <= head.number - windowSize || blocks.size > 2 * windowSize + maxGap)
        blocks.delete(hash)
  }

  /** Adds one more block below the window. */
  const deepen = async (): Promise<boolean> => {
    const lowest = canonical.lowest()
    const head = canonical.head()
    if (!lowest || !head || lowest.number === 0 || head.number - lowest.number >= windowSize - 1)
      return false
    const block = await source.block(lowest.parent_hash)
    if (!block || !canonical.extend(block)) return false
    blocks.set(block.hash, block)
    return true
  }

  const pathTo = (from: Head, head: Head) => {
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
      forget()
      tip = head
      hasSent = false
      sink.lost('The chain cannot be followed back to what was sent before.', 'chain')
      return true
    }
    const added = path.added.map(blockOf)
    for (let at = 0; at < added.length; at += blocksAhead) {
      const some = added.slice(at, at + blocksAhead)
      const found = await Promise.all(some.map((block) => complete(block, head.number)))
      if (stopped.signal.aborted || found.includes(false)) return false
    }
    // The chain may have moved meanwhile, so that this is not the way any more.
    const rest = canonical.pathFrom(head.hash)
    if (!rest || rest.removed.length > 0 || tip !== from) return true
    tip = head
    await send(path.removed.map(blockOf), added)
    prune(head)
    return true
  }

  const send = async (removed: readonly FeedBlock[], added: readonly FeedBlock[]) => {
    // Blocks that were sent to someone, and those whose transactions are pending again.
    if (removed.some(({ isLogged, logs }) => isLogged && !logs))
      sink.lost('The logs of dropped blocks are not known any more.', 'chain')
    else if (removed.length > 0) sink.removed(removed, added)
    for (const block of removed) block.order = 0
    hasSent = true
    for (const [index, block] of added.entries()) {
      block.order = ++order
      block.isLogged = false
      sink.header(block)
      if (users.logs === 0) continue
      for (const next of added.slice(index + 1, index + blocksAhead)) void prefetch(next)
      const logs = block.logs ?? (await logsOf(block))
      if (logs === 'left') return
      block.isLogged = logs !== undefined
      if (logs) sink.logs(block, logs)
    }
  }

  const prefetch = async (block: FeedBlock) => {
    const logs = block.logs ?? (await source.logs(block, 0).catch(() => undefined))
    if (logs && !block.logs) keepLogs(block, logs)
  }

  /** Asks until the logs are there, no client wants them any more, or their block has left the chain. */
  const logsOf = async (block: FeedBlock) => {
    const deadline = clock.now() + maxLogsMs
    let retryMs = firstRetryMs
    for (let attempt = 0; !stopped.signal.aborted; attempt++) {
      const logs = block.logs ?? (await source.logs(block, attempt))
      if (logs) return keepLogs(block, logs)
      if (users.logs === 0) return undefined
      if (canonical.pathFrom(block.hash)?.removed.length !== 0) return 'left'
      if (clock.now() >= deadline) {
        log.warn({ number: block.number, hash: block.hash }, 'no node has the logs of a block')
        sink.lost('The logs of a block are not to be had.', 'logs')
        return undefined
      }
      await clock.sleep(retryMs, stopped.signal).catch(() => {})
      retryMs = Math.min(retryMs * 2, lastRetryMs)
    }
    return 'left'
  }

  // Kept while their block may leave the chain: nodes forget what they drop.
  const keepLogs = (block: FeedBlock, logs: readonly FeedLog[]): readonly FeedLog[] => {
    if (block.logs) return block.logs
    block.logs = logs
    kept.push(block)
    logBytes += bytesOf(logs)
    while (kept.length > 1 && (logBytes > maxLogBytes || kept.length > 2 * windowSize)) {
      const oldest = kept.shift() as FeedBlock
      logBytes -= bytesOf(oldest.logs ?? [])
      oldest.logs = undefined
    }
    return logs
  }
  const forget = () => {
    kept.length = 0
    logBytes = 0
    blocks.clear()
  }

  const run = async () => {
    isRunning = true
    let retryMs = firstRetryMs
    try {
      while (isUsed() || clock.now() - unusedSince < lingerMs) {
        const head = canonical.head()
        tip ??= head
        if (!tip || !head || tip.hash === head.hash || stopped.signal.aborted) break
        if (await follow(tip, head)) retryMs = firstRetryMs
        else {
          retryMs = Math.min(retryMs * 2, lastRetryMs)
          await clock.sleep(retryMs, stopped.signal)
        }
      }
    } catch (error) {
      if (!stopped.signal.aborted) log.error({ err: error }, 'the feed failed')
    } finally {
      isRunning = false
    }
  }

  /** Looks again from time to time, and learns of older blocks while there are listeners. */
  const tick = async () => {
    isTicking = true
    while (!stopped.signal.aborted) {
      await clock.sleep(tickMs, stopped.signal).catch(() => {})
      if (!isUsed() && clock.now() - unusedSince >= lingerMs && !isRunning) break
      wake()
      for (let left = deepenPerTick; left > 0 && isUsed() && !isRunning; left--)
        if (!(await deepen().catch(() => false))) break
    }
    isTicking = false
    if (isUsed()) return
    tip = undefined
    hasSent = false
    forget()
  }

  const waitForHead = async (): Promise<boolean> => {
    const deadline = clock.now() + firstHeadMs
    while (!tip && clock.now() < deadline && !stopped.signal.aborted) {
      await clock.sleep(firstRetryMs, stopped.signal).catch(() => {})
      wake()
    }
    return tip !== undefined
  }

  const wake = () => {
    if (!isRunning && !stopped.signal.aborted && isTicking) void run()
  }
  const unsubscribe = canonical.onChange(wake)

  /** The way from a block to the tip with all that has to be sent; undefined to look once more. */
  const prepare = async (
    hash: string,
    withLogs: boolean,
  ): Promise<FeedPath | false | undefined> => {
    const path = canonical.pathFrom(hash)
    if (!path) return (await deepen()) ? undefined : false
    const removed = path.removed.map(blockOf)
    const added = path.added.map(blockOf)
    const bare = added.find(({ header }) => header === '')
    if (bare) return (await complete(bare)) ? undefined : false
    const lacking = withLogs && [...removed, ...added].find(({ logs }) => !logs)
    if (!lacking) return { removed, added }
    const logs = await source.logs(lacking, 0)
    if (!logs) return false
    keepLogs(lacking, logs)
    return undefined
  }

  return {
    order: () => order,
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
    async replay(hash, withLogs, deliver) {
      const deadline = clock.now() + 10_000
      while (clock.now() < deadline && !stopped.signal.aborted) {
        if (!tip) return false
        if (isRunning || tip.hash !== canonical.head()?.hash) {
          await clock.sleep(firstRetryMs)
          continue
        }
        const path = await prepare(hash, withLogs)
        if (path === false) return false
        // What is delivered must end where the next event begins.
        if (!path || isRunning || tip.hash !== canonical.head()?.hash) continue
        for (const block of path.added) {
          if (block.order === 0) block.order = replayedOrder
          if (withLogs) block.isLogged = true
        }
        deliver(path)
        return true
      }
      return false
    },
    tip: () => tip,
    stop() {
      stopped.abort(new Error('stopped'))
      unsubscribe()
    },
  }
}

const bytesOf = (logs: readonly FeedLog[]): number =>
  logs.reduce((sum, { lead, topics }) => sum + lead.length + topics.length * 90 + 150, 0)
