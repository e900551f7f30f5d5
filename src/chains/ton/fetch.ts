// Fetches a masterchain block: its header, the shard blocks from its tops back to those of the block before, and the pages
// of their transactions. Every part may come from another node, so a header counts only with the place and root hash that
// were asked for.

import type { AssetKey } from '../../contract/records/assets.ts'
import type { BlockHeader, ChainBlock } from '../chain.ts'
import { ChainUnavailableError } from '../chain.ts'
import type { VerificationCounts } from '../verification.ts'
import { type BlockPart, createBlock } from './block.ts'
import { createDoubts } from './doubts.ts'
import type { TonNodes } from './nodes.ts'
import {
  masterShard,
  placeOf,
  type RawBlockId,
  type RawHeader,
  type RawTransaction,
  readAccount,
  readBlockId,
  readHash,
  readPage,
  readRawHeader,
  readShards,
} from './raw.ts'

/** Fetches blocks with everything that they commit. */
export type Fetcher = {
  header(seqno: number, signal: AbortSignal): Promise<RawHeader>
  block(seqno: number, signal: AbortSignal): Promise<ChainBlock>
  /** Says which shard blocks were the newest ones of a block, so that no node has to be asked. */
  remember(seqno: number, tops: readonly RawBlockId[]): void
}

// A page; a larger block takes several.
const transactionsPerPage = 1_000
const rememberedTops = 512
// More than a shard can make between two masterchain blocks: a walk that continues is in the wrong chain.
const longestWalk = 4_096

/** What the port says of a block. */
export const toHeader = ({ id, prev_blocks, gen_utime }: RawHeader): BlockHeader => ({
  number: id.seqno,
  hash: readHash(id.root_hash),
  parent_hash: readHash(prev_blocks[0]!.root_hash),
  time: gen_utime * 1_000,
})

/** Makes what fetches blocks from nodes. */
export function createFetcher({
  nodes,
  native,
  counts,
  now,
}: {
  nodes: TonNodes
  native: AssetKey
  counts: VerificationCounts
  now(): number
}): Fetcher {
  const doubts = createDoubts({ now })
  const known = new Map<number, Promise<readonly RawBlockId[]>>()
  const keep = (seqno: number, tops: Promise<readonly RawBlockId[]>): void => {
    known.set(seqno, tops)
    for (const old of known.keys()) {
      if (known.size <= rememberedTops) break
      known.delete(old)
    }
  }

  // One question for headers of the masterchain and of shards; `seqno` says how far a node must be.
  const askHeader = (id: Partial<RawBlockId>, seqno: number) => ({
    method: 'getBlockHeader',
    params: id,
    seqno,
    accept: (result: unknown): RawHeader | undefined => {
      const header = readRawHeader(result)
      if (!header || header.prev_blocks.length === 0) return undefined
      // A node may answer for another block, by a fault or on purpose. The hash is compared where it is known.
      const isAsked =
        header.id.seqno === id.seqno &&
        header.id.shard === id.shard &&
        header.id.workchain === id.workchain &&
        (id.root_hash === undefined || header.id.root_hash === id.root_hash)
      return isAsked ? header : undefined
    },
  })
  const header = (seqno: number, signal: AbortSignal): Promise<RawHeader> =>
    nodes.ask({
      ...askHeader({ workchain: -1, shard: masterShard, seqno }, seqno),
      signal,
    })

  const topsOf = (seqno: number, signal: AbortSignal): Promise<readonly RawBlockId[]> => {
    if (seqno === 0) return Promise.resolve([])
    const there = known.get(seqno)
    if (there) return there
    const asked: Promise<readonly RawBlockId[]> = nodes.ask({
      // The server in Python has it by this name only.
      method: 'shards',
      params: { seqno },
      seqno,
      signal,
      accept: readShards,
    })
    // The promise is kept, not its value: the next block asks for the same tops at the same time.
    keep(seqno, asked)
    // The next caller retries.
    asked.catch(() => {
      if (known.get(seqno) === asked) known.delete(seqno)
    })
    return asked
  }

  /** Every shard block that a masterchain block commits: from its tops back to those of the one before. */
  const shardBlocks = async (seqno: number, signal: AbortSignal): Promise<RawBlockId[]> => {
    const [before, tops] = await Promise.all([topsOf(seqno - 1, signal), topsOf(seqno, signal)])
    // The walk ends at what the block before has committed: every shard block belongs to exactly one
    // masterchain block.
    const committed = new Set(before.map(placeOf))
    const found = new Map<string, RawBlockId>()
    let edge = tops.filter((id) => !committed.has(placeOf(id)))
    while (edge.length > 0) {
      const next = await Promise.all(
        edge.map(async (id) => {
          found.set(placeOf(id), id)
          if (id.seqno <= 1) return []
          // The same shard one earlier was committed: nothing was skipped, split or merged.
          if (committed.has(placeOf({ ...id, seqno: id.seqno - 1 }))) return []
          const { prev_blocks } = await nodes.ask({ ...askHeader(id, seqno), signal })
          return prev_blocks.filter((prev) => prev.seqno > 0 && !committed.has(placeOf(prev)))
        }),
      )
      edge = [...new Map(next.flat().map((id) => [placeOf(id), id])).values()].filter(
        (id) => !found.has(placeOf(id)),
      )
      if (found.size > longestWalk)
        throw new ChainUnavailableError(
          `block ${seqno}: its shard blocks do not lead to the last one`,
        )
    }
    return [...found.values()]
  }

  const transactionsOf = async (
    id: RawBlockId,
    seqno: number,
    signal: AbortSignal,
  ): Promise<BlockPart> => {
    const transactions: RawTransaction[] = []
    const hashes = new Set<string>()
    const accusers = new Set<() => void>()
    // Page by page. Every node may answer: the hashes that were seen keep pages of two nodes from
    // overlapping.
    for (let after = {}; ; ) {
      const page = await nodes.ask({
        method: 'getBlockTransactionsExt',
        params: { ...id, count: transactionsPerPage, ...after },
        seqno,
        signal,
        accept: (result, accuse) => {
          const given = readPage(result)
          const block = readBlockId((result as { id?: unknown }).id)
          if (!given || (block && block.root_hash !== id.root_hash)) return undefined
          if (given.incomplete && given.transactions.length === 0) return undefined
          // Counted twice, a transaction would be two records; and pages that repeat would never end.
          const named = new Set(given.transactions.map((one) => one.transaction_id.hash))
          if (named.size < given.transactions.length || !named.isDisjointFrom(hashes)) {
            counts.refuse('page')
            return undefined
          }
          accusers.add(accuse)
          return given
        },
      })
      transactions.push(...page.transactions)
      for (const { transaction_id } of page.transactions) hashes.add(transaction_id.hash)
      const last = page.transactions.at(-1)
      if (!page.incomplete || !last) break
      const account = readAccount(last.account) ?? readAccount(last.address)
      // By the account, not by the transaction, as its name would have it.
      after = { after_lt: last.transaction_id.lt, after_hash: account?.toString('hex', 1) }
    }
    return {
      id,
      transactions,
      accuse: () => {
        for (const accuse of accusers) accuse()
      },
    }
  }

  return {
    header,
    block: async (seqno, signal) => {
      // At once: none of the three needs another.
      const [raw, shards, tops] = await Promise.all([
        header(seqno, signal),
        shardBlocks(seqno, signal),
        topsOf(seqno, signal),
      ])
      const parts = await Promise.all(
        [raw.id, ...shards].map((id) => transactionsOf(id, seqno, signal)),
      )
      return createBlock({ header: toHeader(raw), parts, tops, native, doubts, counts })
    },
    remember: (seqno, tops) => keep(seqno, Promise.resolve(tops)),
  }
}
