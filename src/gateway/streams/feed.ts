import type { Pool } from '../../chains/evm/pool/pool-types.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { bareBlock, type FeedBlock, type FeedLog } from './feed-block.ts'
import { createFeedChain, type FeedChain, type Link } from './feed-chain.ts'
import { createFeedHeads } from './feed-heads.ts'
import { createFeedSource, type FeedSource } from './feed-source.ts'

/** What the feed reports, in this order for every change of the chain. */
export type FeedSink = {
  /** Blocks that left the chain, oldest first, and those that take their place. */
  removed(blocks: readonly FeedBlock[], added: readonly FeedBlock[]): void
  header(block: FeedBlock): void
  logs(block: FeedBlock, logs: readonly FeedLog[]): void
  /** There is a gap in the chain, or in its logs alone: listeners must start again. */
  lost(reason: string, what: 'chain' | 'logs'): void
}

/** The way from a block to the head, for a client that saw that block last. */
export type FeedPath = { removed: FeedBlock[]; added: FeedBlock[] }

/** The canonical chain of one network as a stream of events without a gap. */
export type Feed = {
  /** The order of the last header that was sent; later ones have a higher order. */
  order(): number
  /** Until the returned function is called, headers (and logs) are followed. */
  need(what: 'headers' | 'logs'): () => void
  /**
   * Whether it is known where the feed begins: later blocks are sent. Undefined while no listener has
   * shown a head; then a promise of that, false when it took too long.
   */
  begun(): true | Promise<boolean>
  /**
   * Calls `deliver` with all that happened since a block, at a moment when nothing lies between that
   * and the next event; false when the block is not known any more.
   */
  replay(hash: string, withLogs: boolean, deliver: (path: FeedPath) => void): Promise<boolean>
  tip(): Link | undefined
  stop(): void
}

/** How to build a feed. */
export type FeedOptions = {
  pool: Pool
  prefix: string
  clock: Clock
  log: Log
  sink: FeedSink
  source?: FeedSource
  windowSize?: number
  /** Blocks that may be caught up with after all nodes were away. */
  maxGap?: number
  /** How long a head that takes blocks back must stay before that is believed. */
  doubtMs?: number
  /** How long the chain is followed after the last listener has left. */
  lingerMs?: number
  /** Bytes of logs that are kept for removals. */
  maxLogBytes?: number
}

const tickMs = 250
const firstRetryMs = 25
const lastRetryMs = 1_000
const logsAhead = 4
const deepenPerTick = 16
const maxLostAttempts = 5
const firstHeadMs = 5_000
/** Headers wait for the logs of the block before, but not for ever. */
const maxLogsMs = 30_000
/** Below the order of everything sent to all: for blocks that are only sent again. */
const replayedOrder = 0.5

/** Follows the heads of all nodes and reports the changes of the canonical chain. */
export function createFeed(options: FeedOptions): Feed {
  const { pool, clock, log, sink } = options
  const { windowSize = 256, maxGap = 1_024, lingerMs = 30_000, doubtMs = 2_000 } = options
  const { maxLogBytes = 67_108_864 } = options
  const source = options.source ?? createFeedSource(options)
  const heads = createFeedHeads({ pool, clock, windowSize, doubtMs })
  const stopped = new AbortController()
  const users = { headers: 0, logs: 0 }
  let chain: FeedChain<FeedBlock> | undefined
  let order = 1
  let lostAttempts = 0
  let isRunning = false
  let isNotifying = false
  let unusedSince = 0
  let isTicking = false
  let logBytes = 0
  const kept: FeedBlock[] = []

  const isUsed = () => users.headers + users.logs > 0
  const start = (links: readonly Link[]) => {
    chain = createFeedChain<FeedBlock>({
      start: links.map(bareBlock),
      windowSize,
      maxAside: maxGap + windowSize,
      isWhole: ({ header }) => header !== '',
    })
    heads.moved(chain.tip())
  }

  /** Fetches what is missing between a head and the chain. */
  const link = async (own: FeedChain<FeedBlock>, head: Link) => {
    for (let left = maxGap + windowSize; left > 0; left--) {
      const plan = own.plan(head.hash)
      if (plan.kind === 'path') return plan
      if (plan.kind === 'lost') {
        const deeper = await deepen(own)
        if (deeper === 'yes') continue
        // Nodes may be away for a moment, or have thrown that block away.
        if (deeper === 'failed' && ++lostAttempts < maxLostAttempts) return undefined
        return plan
      }
      const block = await source.block(plan.hash, head.number)
      if (!block || stopped.signal.aborted) return undefined
      own.put(block)
    }
    return { kind: 'lost' } as const
  }

  /** Learns one more block below the window. */
  const deepen = async (own: FeedChain<FeedBlock>): Promise<'yes' | 'failed' | 'enough'> => {
    const lowest = own.at(own.floor())
    if (!lowest || lowest.number === 0 || own.tip().number - lowest.number >= windowSize - 1)
      return 'enough'
    const block = await source.block(lowest.parentHash)
    if (!block) return 'failed'
    lostAttempts = 0
    own.extend(block)
    return 'yes'
  }

  const follow = async (own: FeedChain<FeedBlock>, head: Link): Promise<void> => {
    const plan = head.number - own.tip().number > maxGap ? lost : await link(own, head)
    if (chain !== own || stopped.signal.aborted) return
    if (!plan) return heads.failed(head)
    if (plan.kind === 'lost') {
      log.warn({ from: own.tip().number, to: head.number }, 'the chain was lost')
      forgetLogs()
      start([head])
      sink.lost('The chain cannot be linked to the last sent block.', 'chain')
      return
    }
    const { removed, added } = plan
    own.apply(plan)
    heads.moved(own.tip())
    isNotifying = true
    try {
      await notify(own, removed, added)
    } finally {
      isNotifying = false
    }
  }

  const notify = async (
    own: FeedChain<FeedBlock>,
    removed: readonly FeedBlock[],
    added: readonly FeedBlock[],
  ) => {
    // Blocks that were sent to a listener, and those whose transactions are pending again.
    if (removed.some(({ isLogged, logs }) => isLogged && !logs))
      sink.lost('The logs of dropped blocks are not known any more.', 'chain')
    else if (removed.length > 0) sink.removed(removed, added)
    for (const block of removed) block.order = 0
    for (const [index, block] of added.entries()) {
      block.order = ++order
      block.isLogged = false
      sink.header(block)
      if (users.logs === 0) continue
      for (const next of added.slice(index + 1, index + logsAhead)) void prefetch(next)
      const logs = block.logs ?? (await logsOf(own, block))
      if (logs === 'left') return
      block.isLogged = logs !== undefined
      if (logs) sink.logs(block, logs)
    }
  }

  const prefetch = async (block: FeedBlock) => {
    const logs = block.logs ?? (await source.logs(block, 0).catch(() => undefined))
    if (logs && !block.logs) keepLogs(block, logs)
  }

  /** Retries until the logs are there, no listener needs them, or their block has left the chain. */
  const logsOf = async (own: FeedChain<FeedBlock>, block: FeedBlock) => {
    const deadline = clock.now() + maxLogsMs
    let retryMs = firstRetryMs
    for (let attempt = 0; !stopped.signal.aborted; attempt++) {
      const logs = block.logs ?? (await source.logs(block, attempt))
      if (logs) return keepLogs(block, logs)
      if (users.logs === 0) return undefined
      if (chain !== own || (await hasLeft(own, block))) return 'left'
      if (clock.now() >= deadline) {
        log.warn({ number: block.number, hash: block.hash }, 'no node returns the logs of a block')
        sink.lost('The logs of a block are not available.', 'logs')
        return undefined
      }
      await clock.sleep(retryMs, stopped.signal).catch(() => {})
      retryMs = Math.min(retryMs * 2, lastRetryMs)
    }
    return 'left'
  }

  const hasLeft = async (own: FeedChain<FeedBlock>, block: FeedBlock): Promise<boolean> => {
    const head = heads.choose(own)
    const plan = head && (await link(own, head))
    if (head && !plan) heads.failed(head)
    return plan?.kind === 'lost' || (plan?.kind === 'path' && plan.removed.includes(block))
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
  const forgetLogs = () => {
    kept.length = 0
    logBytes = 0
  }

  const run = async () => {
    isRunning = true
    try {
      while (isUsed() || clock.now() - unusedSince < lingerMs) {
        if (!chain) {
          const links = heads.links()
          if (links.length === 0) break
          start(links)
        }
        const own = chain as FeedChain<FeedBlock>
        const head = heads.choose(own)
        if (!head || stopped.signal.aborted) break
        await follow(own, head)
      }
    } catch (error) {
      log.error({ err: error }, 'the feed failed')
    } finally {
      isRunning = false
    }
  }

  /** Looks again now and then: at heads that could not be linked, and at doubtful ones. */
  const tick = async () => {
    isTicking = true
    while (!stopped.signal.aborted) {
      await clock.sleep(tickMs, stopped.signal).catch(() => {})
      if (!isUsed() && clock.now() - unusedSince >= lingerMs && !isRunning) break
      wake()
      for (let left = deepenPerTick; left > 0 && chain && isUsed() && !isRunning; left--)
        if ((await deepen(chain).catch(() => 'failed')) !== 'yes') break
    }
    isTicking = false
    if (isUsed()) return
    chain = undefined
    forgetLogs()
  }

  const waitForHead = async (): Promise<boolean> => {
    const deadline = clock.now() + firstHeadMs
    while (!chain && clock.now() < deadline && !stopped.signal.aborted) {
      await clock.sleep(firstRetryMs, stopped.signal).catch(() => {})
      wake()
    }
    return chain !== undefined
  }

  const wake = () => {
    if (!isRunning && !stopped.signal.aborted && isTicking) void run()
  }
  heads.onNews(wake)

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
    begun: () => chain !== undefined || waitForHead(),
    async replay(hash, withLogs, deliver) {
      const deadline = clock.now() + 10_000
      while (clock.now() < deadline && !stopped.signal.aborted) {
        const own = chain
        if (!own) return false
        if (isNotifying || isRunning) {
          await clock.sleep(firstRetryMs)
          continue
        }
        const path = pathFrom(own, hash)
        if (!path) {
          if ((await deepen(own)) === 'yes') continue
          return false
        }
        const bare = path.added.find(({ header }) => header === '')
        if (bare) {
          const block = await source.block(bare.hash)
          if (!block) return false
          own.put(block)
          continue
        }
        const lacking = withLogs && [...path.removed, ...path.added].find(({ logs }) => !logs)
        if (!lacking) {
          for (const block of path.added) {
            if (block.order === 0) block.order = replayedOrder
            if (withLogs) block.isLogged = true
          }
          deliver(path)
          return true
        }
        const logs = await source.logs(lacking, 0)
        if (!logs) return false
        keepLogs(lacking, logs)
      }
      return false
    },
    tip: () => chain?.tip(),
    stop() {
      stopped.abort()
      heads.stop()
    },
  }
}

const lost = { kind: 'lost' } as const

const bytesOf = (logs: readonly FeedLog[]): number =>
  logs.reduce((sum, { lead, topics }) => sum + lead.length + topics.length * 90 + 150, 0)

function pathFrom(chain: FeedChain<FeedBlock>, hash: string): FeedPath | undefined {
  const removed: FeedBlock[] = []
  let block = chain.get(hash)
  while (block && chain.at(block.number) !== block) {
    removed.push(block)
    block = chain.get(block.parentHash)
  }
  if (!block) return undefined
  const added: FeedBlock[] = []
  for (let number = block.number + 1; number <= chain.tip().number; number++)
    added.push(chain.at(number) as FeedBlock)
  return { removed: removed.reverse(), added }
}
