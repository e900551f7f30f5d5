// Blocks and logs of the feed, fetched once for all subscribers. Nodes that lag leave logs out without a sign of it, so an
// answer counts when the bloom of the header says that nothing is missing. Some chains have no usable blooms: after
// `patience` attempts the longest answer counts.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import { createBloomCheck, isBloom, isEmptyBloom } from '../../chains/evm/codec/bloom.ts'
import type { Head, Pool, RpcReply } from '../../chains/evm/pool/pool-types.ts'
import type { Log } from '../../lib/log.ts'
import { bareBlock, type FeedBlock, type FeedLog, readBlock, readLogs } from './feed-block.ts'

/** The blocks of a feed: fetched once, verified, and kept while they may leave the chain. */
export type FeedBlocks = {
  /** The block of a head; without its header until it is completed. */
  of(head: Head): FeedBlock
  /** Fetches the header where it is not known; false when no node has it now. */
  complete(block: FeedBlock, minBlock?: number): Promise<boolean>
  /** The logs of a block; undefined when no node has them now. */
  logs(block: FeedBlock, attempt: number): Promise<readonly FeedLog[] | undefined>
  /** Adds one more block below the window of the canonical chain; false when there is none to add. */
  deepen(): Promise<boolean>
  /** Drops blocks that are too deep to leave the chain. */
  prune(head: Head): void
  forget(): void
}

/** Bounds of what a feed keeps. */
export type FeedBounds = {
  windowSize: number
  /** Blocks that may be caught up with after the feed fell behind. */
  maxGap: number
  /** Bytes of logs that are kept for removals. */
  maxLogBytes: number
}

/** Makes the memory of a feed on a source. */
export function createFeedBlocks(
  source: FeedSource,
  canonical: Canonical,
  { windowSize, maxGap, maxLogBytes }: FeedBounds,
): FeedBlocks {
  const blocks = new Map<string, FeedBlock>()
  /** Blocks whose logs are kept, in the order in which the logs came. */
  const kept: FeedBlock[] = []
  let logBytes = 0

  // Nodes forget the logs of a block that they drop, but the removal must send them again (spec 6.2).
  const keepLogs = (block: FeedBlock, logs: readonly FeedLog[]): readonly FeedLog[] => {
    // A prefetch and the sender may have asked at the same time. The first answer stays.
    if (block.logs) return block.logs
    block.logs = logs
    kept.push(block)
    logBytes += bytesOf(logs)
    // At least the newest block is kept, whatever its size: its removal must be possible.
    while (kept.length > 1 && (logBytes > maxLogBytes || kept.length > 2 * windowSize)) {
      const oldest = kept.shift() as FeedBlock
      logBytes -= bytesOf(oldest.logs ?? [])
      oldest.logs = undefined
    }
    return logs
  }

  return {
    of(head) {
      const known = blocks.get(head.hash)
      if (known) return known
      const block = bareBlock(head)
      blocks.set(head.hash, block)
      return block
    },
    async complete(block, minBlock) {
      if (block.header !== '') return true
      const found = await source.block(block.hash, minBlock)
      if (!found || found.number !== block.number) return false
      const { header, bloom, transactions } = found
      // In place: other parts of the feed hold the same object.
      Object.assign(block, { header, bloom, transactions })
      return true
    },
    async logs(block, attempt) {
      const logs = block.logs ?? (await source.logs(block, attempt))
      return logs && keepLogs(block, logs)
    },
    async deepen() {
      const lowest = canonical.lowest()
      const head = canonical.head()
      if (!lowest || !head || lowest.number === 0 || head.number - lowest.number >= windowSize - 1)
        return false
      const block = await source.block(lowest.parent_hash)
      if (!block || !canonical.extend(block)) return false
      blocks.set(block.hash, block)
      return true
    },
    // Rarely, and in one pass: at most twice the window is in memory in between.
    prune(head) {
      if (blocks.size <= 2 * windowSize) return
      for (const [hash, { number }] of blocks)
        if (number <= head.number - windowSize || blocks.size > 2 * windowSize + maxGap)
          blocks.delete(hash)
    },
    forget() {
      kept.length = 0
      logBytes = 0
      blocks.clear()
    },
  }
}

// An estimate is enough for a bound: text is one byte per character, a topic 66 characters and its object.
const bytesOf = (logs: readonly FeedLog[]): number =>
  logs.reduce((sum, { lead, topics }) => sum + lead.length + topics.length * 90 + 150, 0)

/** Where the feed gets blocks and logs from; what it delivers is verified. */
export type FeedSource = {
  /** Undefined when no node has it now. */
  block(hash: string, minBlock?: number): Promise<FeedBlock | undefined>
  /** Undefined when no node has them now. */
  logs(block: FeedBlock, attempt: number): Promise<readonly FeedLog[] | undefined>
}

/** Attempts after which a bloom that fits no answer is the header's fault and not the nodes'. */
const patience = 8

/** Makes the source on a pool: every answer may come from another node. */
export function createFeedSource(options: {
  pool: Pool
  prefix: string
  log: Log
  timeoutMs?: number
}): FeedSource {
  const { pool, prefix, log, timeoutMs = 5_000 } = options
  const { fits, covers } = createBloomCheck()
  // Some chains leave all blooms empty: a bloom is used only after earlier ones matched their logs.
  let areBloomsRight = false
  // Some leave the logs of the block itself out (Bor: state sync): then logs may be more, never less.
  let areBloomsPartial = false
  let hasWarned = false

  const ask = (
    method: string,
    params: string,
    minBlock: number | undefined,
    isUseless: (reply: RpcReply) => boolean,
  ) =>
    pool.request({
      method: `${prefix}_${method}`,
      params,
      idempotent: true,
      timeoutMs,
      isUseless,
      ...(minBlock !== undefined && { minBlock }),
    })

  return {
    async block(hash, minBlock) {
      let block: FeedBlock | undefined
      // The answer is judged in the pool's test, so that a useless one makes it ask another node.
      await ask('getBlockByHash', `["${hash}",false]`, minBlock, (reply) => {
        block = readBlock(reply, hash)
        return block === undefined
      })
      return block
    },
    async logs(block, attempt) {
      const { hash, number, bloom } = block
      // Not by the number of transactions: on some chains blocks have logs of their own.
      if (areBloomsRight && isEmptyBloom(bloom)) return []
      let logs: FeedLog[] | undefined
      let isRight = false
      await ask('getLogs', `[{"blockHash":"${hash}"}]`, number, (reply) => {
        const read = readLogs(reply, hash)
        if (!read) return true
        isRight = !isBloom(bloom) || fits(bloom, read) || (areBloomsPartial && covers(bloom, read))
        // The longest answer counts while none fits: a node that lags leaves logs out, it does not
        // invent them.
        if (isRight || !logs || read.length > logs.length) logs = read
        return !isRight
      })
      if (!logs) return undefined
      if (isRight) {
        if (logs.length > 0 && !areBloomsPartial && isBloom(bloom)) areBloomsRight = true
        return logs
      }
      if (attempt < patience) return undefined
      // All nodes agree on more logs than the header knows of: those of the block itself are not in it.
      if (covers(bloom, logs)) {
        areBloomsPartial = true
        areBloomsRight = false
      }
      if (!hasWarned) log.warn({ number, hash }, 'header blooms do not match the logs')
      hasWarned = true
      return logs
    },
  }
}
