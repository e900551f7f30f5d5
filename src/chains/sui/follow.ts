import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import {
  type BlockHeader,
  BlockMissingError,
  type BlockRef,
  type ChainBlock,
  type ChainEvent,
  type Position,
  UnreadableError,
} from '../chain.ts'
import { toBlock, toHeader } from './checkpoint.ts'
import { type Given, startFeed } from './feed.ts'
import { absentFactor, findGapEnd } from './gap.ts'
import type { Nodes } from './nodes.ts'
import { createPages } from './pages.ts'

/** What following needs. */
export type FollowTools = {
  nodes: Nodes
  clock: Clock
  log: Log
  head(signal: AbortSignal): Promise<BlockHeader>
  /** How long to wait for the stream before looking. */
  pollMs: number
  /** How long a stream may be silent. */
  stallMs: number
  /** How long checkpoints that no node has are asked for again before they count as lost. */
  patienceMs: number
}

const maxBatch = 50
const pauseMs = 100
const verdictMs = 5_000

/** Gives the checkpoints after a position (see `Chain.follow`). */
export async function* follow(
  tools: FollowTools,
  after: Position,
  outer: AbortSignal,
): AsyncGenerator<ChainEvent> {
  const { nodes, clock, pollMs } = tools
  const own = new AbortController()
  const signal = AbortSignal.any([outer, own.signal])
  const feed = startFeed(tools)
  const pages = createPages(nodes, signal)
  // A node that was left out may have been repaired in the meantime.
  nodes.readmit()
  let position: BlockRef = after
  let troubleSince: number | undefined
  try {
    for (;;) {
      signal.throwIfAborted()
      const next = position.number + 1
      let given = feed.take(next, maxBatch)
      if (given.length === 0) {
        // Up to where the stream begins, or as far as any node is.
        const last = (feed.firstAfter(next) ?? nodes.best() + 1) - 1
        if (last < next) {
          await feed.news(pollMs, signal)
          // A stream that is silent or away is no reason not to look.
          if (feed.firstAfter(position.number) === undefined)
            await tools.head(signal).catch(() => signal.throwIfAborted())
          continue
        }
        try {
          given = await pages.take(next, last)
        } catch (error) {
          signal.throwIfAborted()
          troubleSince ??= clock.now()
          const waitedMs = clock.now() - troubleSince
          const end = await findGapEnd({ ...tools, next, waitedMs }, signal)
          if (end) {
            yield { kind: 'gap', from: next, to: end, reason: 'pruned by every node' }
            position = end
            troubleSince = undefined
          } else if (waitedMs > patienceFor(error, tools) && isClaimed(nodes, next))
            // Neither pruned nor to be had: the caller decides how long that may last.
            throw new UnreadableError(`checkpoint ${next}: ${reasonOf(error)}`, { cause: error })
          else if (error instanceof BlockMissingError || nodes.best() >= next)
            await clock.sleep(pauseMs, signal)
          else await feed.news(pollMs, signal)
          continue
        }
      }
      const linked = takeLinked(position, given)
      if (linked.length > 0) {
        troubleSince = undefined
        position = linked.at(-1)!
        yield { kind: 'blocks', blocks: linked, head: Math.max(nodes.best(), position.number) }
      }
      if (linked.length === given.length) continue
      feed.clear()
      pages.clear()
      if (linked.length > 0) continue
      troubleSince ??= clock.now()
      if (await hasLeft(tools, position, clock.now() - troubleSince, signal)) {
        yield { kind: 'fork' }
        return
      }
      await clock.sleep(pauseMs, signal)
    }
  } finally {
    own.abort(new Error('following ended'))
    await feed.stop()
  }
}

/** A node that was unreachable may have the checkpoint: it is waited for longer. */
const patienceFor = (error: unknown, { patienceMs }: FollowTools): number =>
  error instanceof BlockMissingError && !error.isCertain ? patienceMs * absentFactor : patienceMs

/** Whether a node that answers says that it has a checkpoint. */
const isClaimed = ({ nodes }: Nodes, number: number): boolean =>
  nodes.some(
    ({ isReachable, isWrongChain, isForked, lowest, head }) =>
      isReachable && !isWrongChain && !isForked && lowest <= number && head >= number,
  )

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

const takeLinked = (after: BlockRef, given: readonly Given[]): ChainBlock[] => {
  const linked: ChainBlock[] = []
  let last = after
  for (const { checkpoint } of given) {
    const block = toBlock(checkpoint)
    if (!block.parent_hash.equals(last.hash) || block.number !== last.number + 1) break
    linked.push(block)
    last = block
  }
  return linked
}

/**
 * Whether the chain has another checkpoint in the place of ours. Checkpoints never leave the chain,
 * so a node that says so is not trusted as long as another one agrees with us. Only when none does,
 * and those that are away do not come back in time, it is the chain itself: it began anew.
 */
async function hasLeft(
  { nodes, patienceMs }: FollowTools,
  position: BlockRef,
  waitedMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const verdicts = await nodes.askAll({
    signal,
    timeoutMs: verdictMs,
    ask: async ({ client }, limited) =>
      toHeader(await client.checkpoint(position.number, limited)).hash.equals(position.hash),
  })
  const others = verdicts.filter(({ answer }) => answer === false)
  if (verdicts.some(({ answer }) => answer === true)) {
    for (const { node } of others) nodes.exclude(node)
    return false
  }
  return others.length > 0 && (others.length === verdicts.length || waitedMs > patienceMs)
}
