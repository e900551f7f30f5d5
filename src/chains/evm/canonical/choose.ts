import type { Head } from '../pool/pool-types.ts'

/** The head of one node. */
export type Shown = {
  head: Head
  /** Whether the node can be called now. */
  isLive: boolean
  /** Whether the node has shown the tip before. */
  isWitness: boolean
}

/** The head to move to; `isDoubtful` when it must stay for a while before that. */
export type Choice = { head: Head; isDoubtful: boolean }

/**
 * Chooses the branch. A higher head always wins. Otherwise the tip stays while a live node shows it.
 * After that, a node that has shown the tip may replace it at once; a contradiction by other nodes, and
 * a rollback without a replacement, are doubtful. A node that is only behind has no effect.
 */
export function chooseHead(options: {
  tip: Head
  /** The lowest canonical block that is known. */
  floor: number
  hashAt(number: number): string | undefined
  shown: readonly Shown[]
}): Choice | undefined {
  const { tip, floor, hashAt, shown } = options
  const able = shown.filter(({ isLive }) => isLive)
  const live = able.filter(({ head }) => head.number >= floor)
  const higher = highest(live.filter(({ head }) => head.number > tip.number))
  // Nodes choose the branch by the rules of their chain; the one that has grown is the one they build on.
  if (higher) return { head: higher.head, isDoubtful: false }
  if (live.some(({ head }) => head.hash === tip.hash)) return undefined

  const others = live.filter(({ head }) => hashAt(head.number) !== head.hash)
  const contradiction = highest(others)
  if (contradiction)
    return { head: contradiction.head, isDoubtful: !others.some(({ isWitness }) => isWitness) }
  // A service of many machines behind one address may show an older head for a moment.
  if (live.some(({ isWitness }) => isWitness))
    return { head: (highest(live) as Shown).head, isDoubtful: true }
  // All are below the window, and one of them has shown the tip: the chain was reset.
  const witness = live.length === 0 ? highest(able.filter(({ isWitness }) => isWitness)) : undefined
  return witness && { head: witness.head, isDoubtful: true }
}

/** The one with the highest head, the first of equals. */
const highest = (shown: readonly Shown[]): Shown | undefined =>
  shown.reduce<Shown | undefined>(
    (best, one) => (best && best.head.number >= one.head.number ? best : one),
    undefined,
  )
