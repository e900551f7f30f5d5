import type { Head } from '../pool/pool-types.ts'

/** The way from one block to another: what leaves the chain and what joins it, both ascending. */
export type Path = { removed: readonly Head[]; added: readonly Head[] }

/** What has to be done so that a block becomes the tip. */
export type Plan =
  /** The parents of this block have to be known first. */
  | { kind: 'missing'; child: Head }
  | ({ kind: 'path' } & Path)
  /** None of its ancestors is in the window. */
  | { kind: 'lost' }

/** The blocks near the head, linked by parent hashes: the canonical ones and those beside them. */
export type Links = {
  tip(): Head
  /** The lowest canonical block that is known. */
  lowest(): Head
  at(number: number): Head | undefined
  get(hash: string): Head | undefined
  /** Remembers a block; only a plan makes it canonical. */
  put(block: Head): void
  plan(hash: string): Plan
  /** Adds a canonical block below the window; false when it does not belong there. */
  extend(block: Head): boolean
  /** Makes the end of the path the tip. */
  apply(path: Path): void
  /** The way from a known block to the tip; undefined when it cannot be traced. */
  pathFrom(hash: string): Path | undefined
}

/**
 * Keeps the links. It does no I/O: blocks go in, ordered removals and additions come out. A branch
 * becomes canonical only when parent hashes link it to the chain.
 */
export function createLinks(options: {
  start: Head
  windowSize: number
  /** Blocks beside the chain that are kept. */
  maxAside: number
}): Links {
  const { start, windowSize, maxAside } = options
  const canonical = new Map([[start.number, start]])
  const known = new Map([[start.hash, start]])
  let tip = start
  let floor = start.number

  const isCanonical = (block: Head) => canonical.get(block.number)?.hash === block.hash

  const prune = () => {
    while (tip.number - floor >= windowSize) {
      const block = canonical.get(floor)
      canonical.delete(floor++)
      if (block) known.delete(block.hash)
    }
    let aside = known.size - canonical.size
    if (aside === 0) return
    for (const [hash, block] of known) {
      if (isCanonical(block) || (block.number >= floor && aside <= maxAside)) continue
      known.delete(hash)
      aside--
    }
  }

  const between = (from: number, to: number): Head[] => {
    const blocks: Head[] = []
    for (let number = from; number <= to; number++) blocks.push(canonical.get(number) as Head)
    return blocks
  }

  return {
    tip: () => tip,
    lowest: () => canonical.get(floor) as Head,
    at: (number) => canonical.get(number),
    get: (hash) => known.get(hash),
    put(block) {
      if (known.has(block.hash)) return
      known.set(block.hash, block)
      if (known.size - canonical.size > 2 * maxAside) prune()
    },
    plan(hash) {
      const added: Head[] = []
      let child: Head | undefined
      let wanted = hash
      for (;;) {
        const block = known.get(wanted)
        if (block && isCanonical(block))
          return {
            kind: 'path',
            removed: between(block.number + 1, tip.number),
            added: added.reverse(),
          }
        if (!block) return child ? { kind: 'missing', child } : { kind: 'lost' }
        // Heights that do not decrease by one belong to no chain.
        if (block.number <= floor || (child && child.number !== block.number + 1))
          return { kind: 'lost' }
        added.push(block)
        child = block
        wanted = block.parent_hash
      }
    },
    extend(block) {
      const lowest = canonical.get(floor) as Head
      if (block.hash !== lowest.parent_hash || block.number !== floor - 1) return false
      known.set(block.hash, block)
      canonical.set(--floor, block)
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
    pathFrom(hash) {
      const removed: Head[] = []
      let block = known.get(hash)
      while (block && !isCanonical(block)) {
        removed.push(block)
        block = known.get(block.parent_hash)
      }
      return block && { removed: removed.reverse(), added: between(block.number + 1, tip.number) }
    },
  }
}
