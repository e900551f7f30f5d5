import type { LogQuery } from './topics.ts'

/** Where a target waits for its blocks. */
type Place = 'ahead' | 'now' | 'over'

/** Which targets the blocks of now can concern, found without a look at the others. */
export type LogRanges<target> = {
  add(target: target): void
  remove(target: target): void
  /** The next block: adds the queries whose range it begins, removes those whose range it ends. */
  reach(number: number): void
}

/** Blocks that may still leave the chain, and their logs sent again as removed. */
const keptBlocks = 1_024

/**
 * Follows the ranges of blocks: a target is entered when its first block comes and left some time after its
 * last one. So thousands of ranges that begin or end elsewhere cost a block nothing.
 */
export function createLogRanges<target extends { query: LogQuery }>(sink: {
  enter(target: target): void
  leave(target: target): void
}): LogRanges<target> {
  const places = new Map<target, Place>()
  /** Those ahead by their first block, those of now by their last one, where they have one. */
  const byFirst = new Map<number, Set<target>>()
  const byLast = new Map<number, Set<target>>()
  let reached = 0

  const put = (map: Map<number, Set<target>>, number: number, target: target) => {
    const there = map.get(number)
    if (there) there.add(target)
    else map.set(number, new Set([target]))
  }
  const take = (map: Map<number, Set<target>>, number: number, target: target) => {
    const there = map.get(number)
    if (there?.delete(target) && there.size === 0) map.delete(number)
  }

  const placeOf = ({ from, to }: LogQuery): Place =>
    from > reached ? 'ahead' : to < reached - keptBlocks ? 'over' : 'now'

  const settle = (target: target) => {
    const { query } = target
    const place = placeOf(query)
    places.set(target, place)
    if (place === 'ahead') put(byFirst, query.from, target)
    if (place !== 'now') return
    if (query.to !== Number.POSITIVE_INFINITY) put(byLast, query.to, target)
    sink.enter(target)
  }
  const unsettle = (target: target) => {
    const { query } = target
    const place = places.get(target)
    places.delete(target)
    if (place === 'ahead') take(byFirst, query.from, target)
    if (place !== 'now') return
    take(byLast, query.to, target)
    sink.leave(target)
  }
  const resettle = (targets: Iterable<target>) => {
    for (const target of [...targets]) {
      unsettle(target)
      settle(target)
    }
  }

  /** The targets of the numbers after `from` up to `to`. */
  const between = (map: Map<number, Set<target>>, from: number, to: number): target[] => {
    const found: target[] = []
    if (to - from > map.size) {
      for (const [number, targets] of map) if (number > from && number <= to) found.push(...targets)
    } else
      for (let number = from + 1; number <= to; number++) found.push(...(map.get(number) ?? []))
    return found
  }

  return {
    add: settle,
    remove: unsettle,
    reach(number) {
      const before = reached
      if (number > before) {
        reached = number
        resettle(between(byFirst, before, number))
        // One more below: what was added meanwhile was placed by the block before.
        resettle(between(byLast, before - keptBlocks - 1, number - keptBlocks - 1))
      } else if (number < before - keptBlocks) {
        // The chain began anew.
        reached = number
        resettle(places.keys())
      }
    },
  }
}
