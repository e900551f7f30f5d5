import type { Link } from './feed-chain.ts'

/** What one node shows. */
export type Shown = {
  head: Link
  /** Whether it can be asked now. */
  isLive: boolean
  /** Whether it has shown the tip before. */
  isWitness: boolean
}

/** The head to go to; `isDoubtful` when it should be seen for a while first. */
export type FeedTarget = { head: Link; isDoubtful: boolean }

/**
 * Decides whose word counts. A higher block always does. Otherwise the tip stays while any node that
 * can be asked shows it; then the node that has shown it itself may take it back, and others may
 * contradict it. A node that is merely behind says nothing.
 */
export function chooseTarget(options: {
  tip: Link
  floor: number
  hashAt(number: number): string | undefined
  shown: readonly Shown[]
}): FeedTarget | undefined {
  const { tip, floor, hashAt, shown } = options
  const able = shown.filter(({ isLive }) => isLive)
  const live = able.filter(({ head }) => head.number >= floor)
  const higher = highest(live.filter(({ head }) => head.number > tip.number))
  if (higher) return { head: higher.head, isDoubtful: false }
  if (live.some(({ head }) => head.hash === tip.hash)) return undefined

  const others = live.filter(({ head }) => hashAt(head.number) !== head.hash)
  const own = highest(others.filter(({ isWitness }) => isWitness))
  if (own) return { head: (highest(others) as Shown).head, isDoubtful: false }
  const contradiction = highest(others)
  if (contradiction) return { head: contradiction.head, isDoubtful: true }
  // A service of many machines behind one address may show an older head for a moment.
  if (live.some(({ isWitness }) => isWitness))
    return { head: (highest(live) as Shown).head, isDoubtful: true }
  // All are far below, among them one that has shown the tip: the chain began anew.
  const witness = live.length === 0 && highest(able.filter(({ isWitness }) => isWitness))
  return witness ? { head: witness.head, isDoubtful: true } : undefined
}

/** The one with the highest head, the first of equals. */
export const highest = (shown: readonly Shown[]): Shown | undefined =>
  shown.reduce<Shown | undefined>(
    (best, one) => (best && best.head.number >= one.head.number ? best : one),
    undefined,
  )
