import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import {
  type BlockHeader,
  BlockMissingError,
  type BlockRef,
  type ChainBlock,
  type ChainEvent,
  ChainUnavailableError,
  type Position,
  UnreadableError,
} from '../chain.ts'
import { hasLeft } from '../follow/branch.ts'
import { followSource } from '../follow/driver.ts'
import { NodeFault } from '../nodes/fault.ts'
import { toBlock, toHeader } from './checkpoint.ts'
import { type Given, startFeed } from './feed.ts'
import type { SuiNode, SuiNodes } from './nodes.ts'
import { createPages } from './pages.ts'
import type { Verifier } from './verifier.ts'

/** What following needs. */
export type FollowTools = {
  nodes: SuiNodes
  clock: Clock
  log: Log
  head(signal: AbortSignal): Promise<BlockHeader>
  /** With full verification. */
  verifier: Verifier | undefined
  /** How long to wait for the stream before looking. */
  pollMs: number
  /** How long a stream may be silent. */
  stallMs: number
  /** How long checkpoints that no node has are asked for again before they count as lost. */
  patienceMs: number
}

const maxBatch = 50

/** Gives the checkpoints after a position (see `Chain.follow`). */
export const follow = (
  tools: FollowTools,
  after: Position,
  outer: AbortSignal,
): AsyncGenerator<ChainEvent> => {
  const { nodes, clock, pollMs, patienceMs } = tools
  return followSource(
    {
      clock,
      open: (signal) => {
        const feed = startFeed(tools)
        const pages = createPages(nodes, signal)
        // A node that was left out may have been repaired in the meantime.
        nodes.readmit()
        return {
          head: nodes.best,
          news: async (number) => {
            await feed.news(pollMs, signal)
            // A silent or closed stream does not stop polling.
            if (feed.firstAfter(number) === undefined)
              await tools.head(signal).catch(() => signal.throwIfAborted())
          },
          take: async (next, head) => {
            const streamed = feed.take(next, maxBatch)
            const given =
              streamed.length > 0
                ? streamed
                : // Up to where the stream begins.
                  await pages.take(next, (feed.firstAfter(next) ?? head + 1) - 1)
            await tools.verifier?.check(given, signal)
            return toBlocks(given, tools.verifier)
          },
          forget: () => {
            feed.clear()
            pages.clear()
          },
          lost: async ({ next, error, waitedMs }) => {
            const to = await findGapEnd({ nodes, patienceMs, next, waitedMs }, signal)
            if (to) return { to, reason: 'pruned by every node' }
            // Neither pruned nor readable: the reader decides how long that may last.
            if (waitedMs > patienceFor(error, patienceMs) && isClaimed(nodes, next))
              throw isBehind(error)
                ? error
                : new UnreadableError(`checkpoint ${next}: ${reasonOf(error)}`, { cause: error })
            return undefined
          },
          hasLeft: (position, waitedMs) =>
            hasLeft({ set: nodes, hashAt, patienceMs }, { position, waitedMs }, signal),
          stop: feed.stop,
        }
      },
    },
    after,
    outer,
  )
}

const hashAt = async ({ client }: SuiNode, number: number, signal: AbortSignal): Promise<Buffer> =>
  toHeader(await client.checkpoint(number, signal)).hash

/** As many as can be read; throws where the first one cannot. */
function toBlocks(given: readonly Given[], verifier: Verifier | undefined): ChainBlock[] {
  const blocks: ChainBlock[] = []
  for (const one of given)
    try {
      blocks.push(toBlock(one.checkpoint, verifier?.claimsOf(one)))
    } catch (error) {
      if (blocks.length === 0) throw error
      break
    }
  return blocks
}

/** A node that was unreachable may have the checkpoint: it is waited for longer. */
const patienceFor = (error: unknown, patienceMs: number): number =>
  error instanceof BlockMissingError && !error.isCertain ? patienceMs * absentFactor : patienceMs

/** Whether the machines that answered will have the checkpoint: nothing is wrong with it. */
const isBehind = (error: unknown): boolean =>
  error instanceof ChainUnavailableError &&
  error.cause instanceof NodeFault &&
  error.cause.kind === 'behind'

/** Whether a node that answers says that it has a checkpoint. */
const isClaimed = ({ nodes }: SuiNodes, number: number): boolean =>
  nodes.some(
    ({ isReachable, isWrongChain, isForked, lowest, head }) =>
      isReachable && !isWrongChain && !isForked && lowest <= number && head >= number,
  )

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/** An unreachable node, above all an archive, may still have the history: it is waited for longer. */
const absentFactor = 20

/**
 * The last of the checkpoints from `next` on that no node has any more, named by the first one that
 * is there. Undefined while some node has them, or may have them and is unreachable.
 */
async function findGapEnd(
  {
    nodes,
    next,
    waitedMs,
    patienceMs,
  }: { nodes: SuiNodes; next: number; waitedMs: number; patienceMs: number },
  signal: AbortSignal,
): Promise<BlockRef | undefined> {
  if (waitedMs < patienceMs) return undefined
  await Promise.allSettled(nodes.nodes.map((node) => nodes.refresh(node, signal)))
  signal.throwIfAborted()
  const ours = nodes.nodes.filter(({ isWrongChain, isForked }) => !isWrongChain && !isForked)
  const present = ours.filter(({ isReachable }) => isReachable)
  const lowest = Math.min(...present.map((node) => node.lowest))
  if (present.length === 0 || lowest <= next) return undefined
  if (present.length < ours.length && waitedMs < patienceMs * absentFactor) return undefined
  try {
    const first = await nodes.ask({ has: lowest }, signal, (node, limited) =>
      node.client.checkpoint(lowest, limited),
    )
    return { number: lowest - 1, hash: toHeader(first).parent_hash }
  } catch {
    // Nodes prune on while we look: next time it is a higher one.
    signal.throwIfAborted()
    return undefined
  }
}
