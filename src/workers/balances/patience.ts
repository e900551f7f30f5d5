import type { Clock } from '../../lib/clock.ts'

/** How long blocks that no node can read are tried again before something else is done: by number, or by depth. */
export type Patience = {
  /** Notes that a block could not be read, and says whether that has lasted too long. */
  isOver(block: number): boolean
  succeed(block: number): void
}

// Longer than the time that a node behind a load balancer needs to catch up with its siblings.
const longestMs = 10_000
const mostBlocks = 1_000

/** A node may lack a block, or the state of one, for some seconds: another one has it, or it comes. */
export function createPatience(clock: Clock): Patience {
  // Insertion order is age: the first key is the oldest.
  const since = new Map<number, number>()
  return {
    isOver: (block) => {
      const begun = since.get(block)
      if (begun !== undefined) return clock.now() - begun >= longestMs
      // Oldest first out. A forgotten block starts its time again, which only delays the fallback.
      if (since.size >= mostBlocks) since.delete(since.keys().next().value!)
      since.set(block, clock.now())
      return false
    },
    succeed: (block) => void since.delete(block),
  }
}

/** No patience: the first failure counts. For callers without a loop of their own. */
export const tryOnce: Patience = { isOver: () => true, succeed: () => {} }
