import type { Clock } from '../../../lib/clock.ts'
import type { Head, Pool } from '../pool/pool-types.ts'
import type { Shown } from './choose.ts'
import type { NodeHead } from './disputes.ts'

/** The heads that nodes show. */
export type ShownHeads = {
  show(name: string, head: Head): void
  /** Every node has shown this block, as far as is known. */
  assume(head: Head): void
  /** The last head of each node. */
  values(): Iterable<NodeHead>
  /** The nodes whose last head is none of these. */
  namesBeside(isOnBranch: (head: Head) => boolean): string[]
  /** What the choice of a head needs, given the hash of the current tip. */
  list(tip: string): Shown[]
  reset(): void
}

/** Keeps the last head of each node, and which nodes have shown a block. */
export function createShownHeads(options: {
  pool: Pick<Pool, 'status'>
  clock: Clock
  /** Blocks of which the nodes that have shown them are remembered. */
  size: number
}): ShownHeads {
  const { pool, clock, size } = options
  const nodes = new Map<string, NodeHead>()
  const shownBy = new Map<string, Set<string>>()
  return {
    show: (name, head) => {
      nodes.set(name, { head, time: clock.now() })
      const names = shownBy.get(head.hash)
      if (names) names.add(name)
      else shownBy.set(head.hash, new Set([name]))
      // The oldest entry: a map keeps the order of insertion.
      if (shownBy.size > size) shownBy.delete(shownBy.keys().next().value as string)
    },
    assume: ({ hash }) => {
      shownBy.set(hash, new Set(pool.status().map(({ name }) => name)))
    },
    values: () => nodes.values(),
    namesBeside: (isOnBranch) =>
      [...nodes].flatMap(([name, { head }]) => (isOnBranch(head) ? [] : [name])),
    list: (tip) => {
      const witnesses = shownBy.get(tip)
      const live = new Set<string>()
      for (const { name, state } of pool.status())
        if (state === 'healthy' || state === 'degraded') live.add(name)
      return [...nodes].map(([name, { head }]) => ({
        head,
        isLive: live.has(name),
        isWitness: witnesses?.has(name) === true,
      }))
    },
    reset: () => {
      nodes.clear()
      shownBy.clear()
    },
  }
}
