// The recorder of pending transactions of Q. It uses the pool of the query chain and storage. Memory and rows
// are bounded; records stay readable for 24 hours after they left the pool.

import type { RawFields } from '../../chains/evm/block/records.ts'
import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Pool } from '../../chains/evm/pool/pool-types.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Db } from '../../storage/pg/database.ts'
import {
  claimUnchecked,
  countPending,
  forgetPending,
  markLeft,
  markReturned,
  readableMs,
  recordPending,
  type SeenPending,
} from '../../storage/transactions/pending.ts'
import { type BlockMark, createMinedBlocks } from './mined-blocks.ts'
import { createPendingNodes } from './nodes.ts'
import { createPendingQueue } from './queue.ts'
import { toSeen } from './seen.ts'

/** Records the transactions of one network that wait for a block. */
export type PendingRecorder = {
  /** A node accepted or announced this transaction. */
  see(hash: string): void
  /** Records what nodes gave whole. */
  record(transactions: readonly RawFields[]): Promise<void>
  /** What the nodes hold of one sender. */
  contentOf(from: string, signal: AbortSignal): Promise<RawFields[]>
  status(): PendingStatus
  stop(): Promise<void>
}

/** What a recorder has done since it began, and what it has. */
export type PendingStatus = {
  /** The nodes that announce transactions to it. */
  sources: string[]
  /** Whether a node shows its whole pool. */
  reads_txpool: boolean
  /** Announced and not fetched yet. */
  queued: number
  /** New ones, and those that came back. */
  recorded: number
  /** Left out or removed because a bound was reached. */
  dropped: number
  /** Rows, and those of them that wait, at the last look: every minute. */
  kept: number
  waiting: number
}

/** The bounds of a recorder; each has a default. */
export type PendingLimits = {
  /** Rows of the chain; beyond, the oldest go. */
  maxRows: number
  /** How often a waiting one is asked for. */
  recheckMs: number
  sweepMs: number
  contentMs: number
  forgetMs: number
  /** Between the two questions after which one counts as gone. */
  doubtMs: number
}

const defaults: PendingLimits = {
  maxRows: 100_000,
  recheckMs: 2_000,
  sweepMs: 1_000,
  contentMs: 2_000,
  forgetMs: 60_000,
  doubtMs: 500,
}

/** What one batch to a node holds. */
const batch = 100
// The wait while there is nothing to do. It bounds how late a record appears.
const idleMs = 100
// About 20 questions per second at the most, whatever the size of the pool.
const perCallMs = 50
// How often a block is asked for; the wait doubles with each of them. A node may be a little late, or unreachable for a moment.
const mostReads = 5
// A pool that takes long to write out is asked for accordingly less often. One slow answer must not hide what waits for a
// nonce for minutes: nodes announce only what can be mined.
const restFactor = 20
const maxRestMs = 20_000

/** Whether a block is on the branch; of one that left the window it is believed. */
const branchCheckOf =
  ({ head, bestHashAt, isLinking }: Pick<Canonical, 'head' | 'bestHashAt' | 'isLinking'>) =>
  (number: number, hash: string): boolean => {
    const best = bestHashAt(number)
    return best === undefined ? !isLinking() && number <= (head()?.number ?? -1) : best === hash
  }

/** Starts to record. Every process may do so: what two of them see is stored once. */
export function startPendingRecorder(options: {
  db: Db
  pool: Pick<Pool, 'request' | 'can' | 'onPending' | 'pendingSources'>
  /** What is in a block of another branch still waits. */
  canonical: Pick<Canonical, 'onChange' | 'head' | 'bestHashAt' | 'isLinking'>
  prefix: string
  network_id: number
  clock: Clock
  log: Log
  /** Whether what nodes announce or hold is recorded, and not only what is reported to it. */
  listens?: boolean
  limits?: Partial<PendingLimits>
}): PendingRecorder {
  const { db, pool, canonical, prefix, network_id, clock, log, listens = true } = options
  const limits = { ...defaults, ...options.limits }
  const nodes = createPendingNodes({ pool, prefix, clock, isOnBranch: branchCheckOf(canonical) })
  const queue = createPendingQueue()
  const blocks = createMinedBlocks()
  const stopping = new AbortController()
  const { signal } = stopping
  // Set when two transactions with one nonce are known: the next sweep starts at once.
  let isReplacing = false
  let recorded = 0
  let dropped = 0
  let counts = { kept: 0, waiting: 0 }

  const store = async (seen: readonly SeenPending[]) => {
    const { stored, replaces } = await recordPending(db, network_id, seen)
    recorded += stored
    if (replaces) isReplacing = true
  }
  const rowsOf = (transactions: readonly RawFields[], time: number): SeenPending[] =>
    transactions.flatMap((raw) => toSeen(raw, time) ?? [])

  const fetch = async () => {
    const taken = queue.take(clock.now(), batch)
    if (taken.length === 0) return clock.sleep(idleMs, signal)
    try {
      const found = await Promise.all(taken.map(([hash]) => nodes.find(hash, signal)))
      await store(
        found.flatMap((raw, index) => (raw ? (toSeen(raw, taken[index]![1].time) ?? []) : [])),
      )
      // `null` means that nodes answered and have none; `undefined` that none answered, which is
      // not held against the transaction.
      for (const [index, raw] of found.entries()) {
        if (raw === null) queue.retry(...taken[index]!, clock.now())
        else if (raw === undefined) queue.postpone(...taken[index]!, clock.now())
      }
    } catch (error) {
      for (const one of taken) queue.postpone(...one, clock.now())
      throw error
    }
    const lost = queue.takeLost()
    dropped += lost
    if (lost > 0) log.warn({ lost }, 'pending transactions came faster than they can be recorded')
  }

  /** The transactions of a block that are to be marked; undefined when no node said. */
  const transactionsOf = async ({ kind, number, hash }: BlockMark) => {
    const known = blocks.find(hash)
    if (kind === 'doubted') {
      if (!known) return []
      const current = await nodes.hashAt(number, signal)
      if (current === undefined) return undefined
      return current === hash ? [] : known
    }
    if (known) return known
    const hashes = await nodes.transactionsOf(hash, signal)
    return hashes?.map((one) => Buffer.from(one.slice(2), 'hex'))
  }

  /** What is in a block does not wait any more, until the block leaves the chain. */
  const leave = async () => {
    const block = blocks.first()
    if (!block) return clock.sleep(idleMs, signal)
    const transactions = await transactionsOf(block)
    if (!transactions && ++block.misses < mostReads)
      return clock.sleep(limits.doubtMs * 2 ** block.misses, signal)
    if (!transactions) {
      // The next blocks must not wait for one that no node gives.
      const { number, hash, kind } = block
      log.warn({ number, hash, kind }, 'the transactions of a block could not be read')
    } else if (block.kind === 'added') {
      await markLeft(db, network_id, transactions, new Date(clock.now()))
      blocks.keep(block, transactions)
    } else if (transactions.length > 0) {
      // Those that return though no node holds them, or that are in another block already, are found out by the sweep.
      await markReturned(db, network_id, transactions)
      blocks.forget(block.hash)
    }
    blocks.shift()
  }

  /** Finds out what was replaced or dropped, and what was mined between two checks. */
  const sweep = async () => {
    isReplacing = false
    const now = clock.now()
    const claimed = await claimUnchecked(db, network_id, {
      now: new Date(now),
      before: new Date(now - limits.recheckMs),
      limit: batch,
    })
    const ask = async (hashes: readonly Buffer[]) => {
      const found = await Promise.all(
        hashes.map((hash) => nodes.find(`0x${hash.toString('hex')}`, signal)),
      )
      const isMined = (raw: RawFields) => raw.blockHash !== null && raw.blockHash !== undefined
      return {
        mined: hashes.filter((_, index) => found[index] && isMined(found[index])),
        missing: hashes.filter((_, index) => found[index] === null),
      }
    }
    const { mined, missing } = await ask(claimed)
    await markLeft(db, network_id, mined, new Date(clock.now()))
    if (missing.length > 0) {
      // Behind one address may be several nodes, of which one is a little late.
      await clock.sleep(limits.doubtMs, signal)
      const again = await ask(missing)
      await markLeft(db, network_id, [...again.mined, ...again.missing], new Date(clock.now()))
    }
    // The more there are, the less often each: nodes answer other questions too, and some cost money.
    const end = clock.now() + Math.max(limits.sweepMs, claimed.length * perCallMs)
    while (!isReplacing && clock.now() < end) await clock.sleep(idleMs, signal)
  }

  const readContent = async () => {
    const begun = clock.now()
    await store(rowsOf(await nodes.content(signal), begun))
    const restMs = Math.min((clock.now() - begun) * restFactor, maxRestMs)
    await clock.sleep(Math.max(limits.contentMs, restMs), signal)
  }

  const forget = async () => {
    const leftBefore = new Date(clock.now() - readableMs)
    const bounds = { leftBefore, max: limits.maxRows, limit: 5_000 }
    // In batches: a flood may leave many rows, and one large delete would hold its locks for long.
    for (let isMore = true; isMore; signal.throwIfAborted()) {
      const { expired, beyond } = await forgetPending(db, network_id, bounds)
      dropped += beyond
      isMore = Math.max(expired, beyond) >= bounds.limit
    }
    counts = await countPending(db, network_id)
    await clock.sleep(limits.forgetMs, signal)
  }

  // Each step runs in its own loop. A failing one does not stop the others.
  const repeat = async (step: () => Promise<void>) => {
    while (!signal.aborted) {
      try {
        await step()
      } catch (error) {
        if (signal.aborted) return
        log.warn({ err: error }, 'recording pending transactions failed, will retry')
        await clock.sleep(1_000, signal).catch(() => {})
      }
    }
  }

  const unsubscribe = [
    listens ? pool.onPending((hash) => queue.add(hash, clock.now())) : () => {},
    canonical.onChange(blocks.push),
  ]
  const steps = [fetch, leave, sweep, forget, ...(listens ? [readContent] : [])]
  const running = steps.map(repeat)

  return {
    see: (hash) => queue.add(hash.toLowerCase(), clock.now()),
    record: (transactions) => store(rowsOf(transactions, clock.now())),
    contentOf: nodes.contentOf,
    status: () => ({
      sources: listens ? pool.pendingSources() : [],
      reads_txpool: listens && pool.can('txpool'),
      queued: queue.size(),
      recorded,
      dropped,
      ...counts,
    }),
    stop: async () => {
      for (const end of unsubscribe) end()
      stopping.abort(new Error('stopping'))
      await Promise.all(running)
    },
  }
}
