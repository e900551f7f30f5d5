// `resume` of a subscription: what a client has missed since a block, removals included. The path is delivered only while
// the feed stands at the head, so nothing is missing and nothing comes twice where the live events begin.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Clock } from '../../lib/clock.ts'
import type { FeedBlock } from './feed-block.ts'
import type { FeedBlocks } from './feed-source.ts'

/** The way from a block to the head, for a client that saw that block last. */
export type FeedPath = { removed: FeedBlock[]; added: FeedBlock[] }

/** Sends what happened since a block to one client; false when the block is not known any more. */
export type Replay = (
  hash: string,
  withLogs: boolean,
  deliver: (path: FeedPath) => void,
) => Promise<boolean>

// A client that resumes waits for the feed to reach the head; not for ever.
const maxReplayMs = 10_000
const retryMs = 25
/** Below the order of everything that was sent to all: of blocks that were only replayed. */
const replayedOrder = 0.5

/**
 * Makes the replay. The path is fetched while the feed stands at the head, and delivered only if it still
 * does: otherwise an event between the two would be missing or arrive twice.
 */
export function createReplay(options: {
  blocks: FeedBlocks
  canonical: Canonical
  clock: Clock
  signal: AbortSignal
  /** Whether the feed has sent all up to the head; undefined when it has not begun. */
  isAtHead(): boolean | undefined
}): Replay {
  const { blocks, canonical, clock, signal, isAtHead } = options

  /** The path with all that has to be sent; undefined to look once more, after one thing was fetched. */
  const prepare = async (
    hash: string,
    withLogs: boolean,
  ): Promise<FeedPath | false | undefined> => {
    // Deepens the window one block at a time: a client that resumes far back costs one request per
    // turn.
    const path = canonical.pathFrom(hash)
    if (!path) return (await blocks.deepen()) ? undefined : false
    const removed = path.removed.map(blocks.of)
    const added = path.added.map(blocks.of)
    const bare = added.find(({ header }) => header === '')
    if (bare) return (await blocks.complete(bare)) ? undefined : false
    const lacking = withLogs && [...removed, ...added].find(({ logs }) => !logs)
    if (!lacking) return { removed, added }
    return (await blocks.logs(lacking, 0)) ? undefined : false
  }

  return async (hash, withLogs, deliver) => {
    const deadline = clock.now() + maxReplayMs
    while (clock.now() < deadline && !signal.aborted) {
      const isReady = isAtHead()
      if (isReady === undefined) return false
      if (!isReady) {
        await clock.sleep(retryMs)
        continue
      }
      const path = await prepare(hash, withLogs)
      if (path === false) return false
      // What is delivered must end where the next event begins.
      if (!path || !isAtHead()) continue
      for (const block of path.added) {
        if (block.order === 0) block.order = replayedOrder
        if (withLogs) block.isLogged = true
      }
      deliver(path)
      return true
    }
    return false
  }
}
