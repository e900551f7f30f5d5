/** What places a block in a chain. */
export type Link = { number: number; hash: string; parentHash: string }

/** What has to be done so that a block becomes the last one of the chain. */
export type Plan<block> =
  /** This block has to be put first. */
  | { kind: 'missing'; hash: string }
  /** Both ascending. */
  | { kind: 'path'; removed: block[]; added: block[] }
  /** No block of the window is among its ancestors. */
  | { kind: 'lost' }

/** The canonical chain near its head, and the blocks that left it. */
export type FeedChain<block extends Link> = {
  tip(): block
  /** The lowest block that can still be an ancestor. */
  floor(): number
  at(number: number): block | undefined
  get(hash: string): block | undefined
  /** Remembers a block; it becomes part of the chain by a plan only. */
  put(block: block): void
  plan(hash: string): Plan<block>
  /** Lengthens the chain at its lower end; false when the block does not belong there. */
  extend(block: block): boolean
  /** Makes the plan's end the tip. */
  apply(plan: { removed: readonly block[]; added: readonly block[] }): void
}

/**
 * The state machine behind all streams: blocks in, ordered removals and additions out. It makes no requests
 * and waits for nothing; a branch is taken only when it is linked by parent hashes.
 */
export function createFeedChain<block extends Link>(options: {
  /** Ascending and linked; at least one. */
  start: readonly block[]
  windowSize: number
  /** Blocks beside the chain that are remembered. */
  maxAside: number
  /** Whether enough is known of a block to add it. */
  isWhole(block: block): boolean
}): FeedChain<block> {
  const { start, windowSize, maxAside, isWhole } = options
  const canonical = new Map(start.map((block) => [block.number, block]))
  const known = new Map(start.map((block) => [block.hash, block]))
  let tip = start.at(-1) as block
  let floor = (start[0] as block).number

  const isCanonical = (block: block) => canonical.get(block.number) === block

  const prune = () => {
    while (tip.number - floor >= windowSize) {
      const block = canonical.get(floor)
      canonical.delete(floor++)
      if (block) known.delete(block.hash)
    }
    let aside = known.size - canonical.size
    if (aside === 0) return
    for (const [hash, block] of known) {
      if (isCanonical(block)) continue
      if (block.number >= floor && aside <= maxAside) continue
      known.delete(hash)
      aside--
    }
  }

  return {
    tip: () => tip,
    floor: () => floor,
    at: (number) => canonical.get(number),
    get: (hash) => known.get(hash),
    put(block) {
      const old = known.get(block.hash)
      if (!old) known.set(block.hash, block)
      // What is in the chain keeps its identity, and what was sent of it.
      else if (!isWhole(old)) Object.assign(old, block)
    },
    plan(hash) {
      const added: block[] = []
      let wanted = hash
      for (;;) {
        const block = known.get(wanted)
        if (block && isCanonical(block)) {
          const removed: block[] = []
          for (let number = block.number + 1; number <= tip.number; number++)
            removed.push(canonical.get(number) as block)
          return { kind: 'path', removed, added: added.reverse() }
        }
        if (!block || !isWhole(block)) return { kind: 'missing', hash: wanted }
        // Heights that do not go down by one belong to no chain.
        const child = added.at(-1)
        if (child && child.number !== block.number + 1) return { kind: 'lost' }
        if (block.number <= floor) return { kind: 'lost' }
        added.push(block)
        wanted = block.parentHash
      }
    },
    extend(block) {
      const lowest = canonical.get(floor) as block
      if (block.hash !== lowest.parentHash || block.number !== floor - 1) return false
      const own = known.get(block.hash) ?? block
      known.set(own.hash, own)
      canonical.set(--floor, own)
      return true
    },
    apply({ removed, added }) {
      const first = removed[0] ?? added[0]
      if (!first) return
      const ancestor = canonical.get(first.number - 1)
      for (const { number } of removed) canonical.delete(number)
      for (const block of added) canonical.set(block.number, block)
      tip = added.at(-1) ?? ancestor ?? tip
      prune()
    },
  }
}
