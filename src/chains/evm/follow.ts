// Follows an EVM chain along its canonical branch. It has its own loop, because it decides more than the shared
// driver does: same-height forks, the cut at the canonical branch, heads that no node has
// (docs/decisions/evm.md). Fetching ahead, links and gaps are shared with `chains/follow`.
import type { Clock } from '../../lib/clock.ts'
import {
  type BlockHeader,
  BlockMissingError,
  type BlockRef,
  type ChainBlock,
  type ChainEvent,
  type Position,
  UnreadableError,
} from '../chain.ts'
import { createFetchAhead } from '../follow/fetch-ahead.ts'
import { findGapEnd, takeLinked } from '../follow/linked.ts'
import type { FetchBlock } from './block/fetch.ts'
import type { EvmNodes } from './pool/nodes.ts'

/** What following needs. */
export type FollowTools = {
  pool: EvmNodes
  clock: Clock
  fetchBlock: FetchBlock
  head(signal: AbortSignal): Promise<BlockHeader>
  header(number: number, signal: AbortSignal): Promise<BlockHeader | undefined>
  /** The hash of the canonical chain at this height, where it is known. */
  branchHashAt(number: number): Buffer | undefined
  /** How long to wait for a push before looking. */
  pollMs: number
  /** Blocks that are fetched at once. */
  inFlight: number
  /** How long a block that no node has is asked for again before it counts as lost. */
  patienceMs: number
}

// Blocks of one database transaction while catching up; at the head there is one.
const maxBatch = 50
const pauseMs = 100

/** Gives the blocks after a position (see `Chain.follow`). */
export async function* follow(
  tools: FollowTools,
  after: Position,
  outer: AbortSignal,
): AsyncGenerator<ChainEvent> {
  const { pool, clock, pollMs } = tools
  const own = new AbortController()
  const signal = AbortSignal.any([outer, own.signal])
  const ahead = createFetchAhead({
    fetchBlock: (number) => tools.fetchBlock(number, signal, tracing),
    inFlight: tools.inFlight,
    maxBatch,
  })
  // What the network was traced for before, it is expected of every block.
  const tracing = { isExpected: after.isTraced === true, mayRetry: true }
  let position: BlockRef = after
  let missingSince: number | undefined
  let news = Promise.withResolvers<void>()
  const unsubscribe = pool.onHead(() => news.resolve())
  try {
    if (await hasLeft(tools, position, signal)) {
      yield { kind: 'fork' }
      return
    }
    for (;;) {
      const heard = news.promise
      const shown = pool.head()?.number ?? -1
      // Asked for only where nothing was shown: behind, and after a push, the pool knows enough.
      const head = shown > position.number ? { number: shown } : await tools.head(signal)
      if (head.number <= position.number) {
        const isSame =
          head.number < position.number || !('hash' in head) || head.hash.equals(position.hash)
        if (!isSame && (await hasLeft(tools, position, signal))) {
          yield { kind: 'fork' }
          return
        }
        await waitFor(heard, pollMs, clock, signal)
        news = Promise.withResolvers()
        continue
      }
      const next = position.number + 1
      let fetched: ChainBlock[]
      try {
        fetched = await ahead.take(next, head.number)
        missingSince = undefined
      } catch (error) {
        if (!(error instanceof BlockMissingError)) throw error
        // A block right at the head may be on its way still.
        missingSince ??= clock.now()
        if (clock.now() - missingSince < tools.patienceMs) {
          await clock.sleep(pauseOf(clock.now() - missingSince), signal)
          continue
        }
        const find = (number: number) => unlessMissing(tools.fetchBlock(number, signal))
        const to = await findGapEnd(find, { from: next, head: head.number })
        if (!to) {
          // No node has the head: a node announced a block that does not exist.
          await waitFor(heard, pollMs, clock, signal)
          news = Promise.withResolvers()
          continue
        }
        yield { kind: 'gap', from: next, to, reason: error.message }
        position = to
        missingSince = undefined
        continue
      }
      const blocks = tracing.isExpected ? fetched : untilUntraced(fetched)
      tracing.isExpected ||= blocks.some(({ isTraced }) => isTraced === true)
      const linked = takeCanonical(tools, takeLinked(position, blocks))
      if (linked.length < fetched.length) ahead.forget()
      if (linked.length > 0) {
        position = linked.at(-1)!
        yield { kind: 'blocks', blocks: linked, head: head.number }
      } else if (await hasLeft(tools, position, signal)) {
        yield { kind: 'fork' }
        return
      } else await clock.sleep(pauseMs, signal)
    }
  } finally {
    unsubscribe()
    own.abort()
  }
}

/**
 * The blocks before the first that is not traced although one before it is. It was fetched when traces were not expected
 * yet, and is fetched again.
 */
function untilUntraced(blocks: ChainBlock[]): ChainBlock[] {
  const traced = blocks.findIndex(({ isTraced }) => isTraced === true)
  const untraced = blocks.findIndex(
    ({ isTraced }, index) => isTraced === false && traced !== -1 && index > traced,
  )
  return untraced === -1 ? blocks : blocks.slice(0, untraced)
}

/** As many of the blocks as the canonical chain does not contradict. */
function takeCanonical({ branchHashAt }: FollowTools, blocks: ChainBlock[]): ChainBlock[] {
  const other = blocks.findIndex(({ number, hash }) => branchHashAt(number)?.equals(hash) === false)
  return other === -1 ? blocks : blocks.slice(0, other)
}

/** Growing: what a node does not have it will not have a tenth of a second later. */
const pauseOf = (waitedMs: number): number => Math.max(pauseMs, waitedMs / 2)

/** Whether another block has a position's height, by nodes that have reached the head. */
async function hasLeft(
  { header, branchHashAt }: FollowTools,
  position: BlockRef,
  signal: AbortSignal,
): Promise<boolean> {
  const canonical = branchHashAt(position.number)
  if (canonical) return !canonical.equals(position.hash)
  const there = await unlessMissing(header(position.number, signal))
  return there !== undefined && !there.hash.equals(position.hash)
}

/** A block that no node has is undefined; it is not an error. */
const unlessMissing = async <found>(finding: Promise<found>): Promise<found | undefined> =>
  await finding.catch((error: unknown) => {
    if (error instanceof BlockMissingError || error instanceof UnreadableError) return undefined
    throw error
  })

async function waitFor(
  heard: Promise<void>,
  pollMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const done = new AbortController()
  try {
    await Promise.race([heard, clock.sleep(pollMs, AbortSignal.any([signal, done.signal]))])
  } finally {
    done.abort(new Error('heard of a block'))
  }
  signal.throwIfAborted()
}
