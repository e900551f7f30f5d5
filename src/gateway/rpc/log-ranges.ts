import type { LogQuery } from './topics.ts'

/** Which targets the blocks of now can concern, found without a look at the others. */
export type LogRanges<target> = {
  add(target: target): void
  remove(target: target): void
  /**
   * The next block. Queries whose range begins are entered, and those whose range has ended are left, in turns of the event
   * loop. True when all that want this block are entered, otherwise a promise of that.
   */
  reach(number: number): true | Promise<void>
}

/** Blocks that may still leave the chain, and their logs sent again as removed. */
const keptBlocks = 1_024

/**
 * Targets are entered that many blocks before their first one: an organization may have 200,000 addresses that begin at
 * the same block, and the logs of all others would wait for them.
 */
const earlyBlocks = 64

/** The targets of one organization that wait for the same. */
type Waiting<target> = Map<string, Set<target>>

/** Each target is in one set at any time, also while it waits for its turn. */
type Place<target> = { set: Set<target>; isEntered: boolean }

/**
 * Follows the ranges of blocks: a target is entered before its first block comes and left some time after its
 * last one. So thousands of ranges that begin or end elsewhere cost a block nothing.
 */
export function createLogRanges<
  target extends { query: LogQuery; organization_id?: string },
>(sink: {
  enter(target: target): void
  leave(target: target): void
  /** How long it takes to enter or leave it, and how much of that is done in one turn. */
  costOf(target: target): number
  perTurn: number
  /** Acts in a turn of the event loop, organizations in rotation. */
  inTurn(organization_id: string, act: () => void): void
}): LogRanges<target> {
  const places = new Map<target, Place<target>>()
  /** Those ahead by their first block, those that are entered by their last one, where they have one. */
  const byFirst = new Map<number, Waiting<target>>()
  const byLast = new Map<number, Waiting<target>>()
  let endless: Waiting<target> = new Map()
  let over: Waiting<target> = new Map()
  /** Whose time has come, by organization, with the block at which they must be at their places. */
  const due = new Map<string, { targets: Set<target>; by: number }[]>()
  /** Undefined until the first block: all are entered, because any of them may want it. */
  let reached: number | undefined

  const ownerOf = ({ organization_id = '' }: target) => organization_id

  const put = (waiting: Waiting<target>, target: target, isEntered: boolean) => {
    const owner = ownerOf(target)
    const set = waiting.get(owner) ?? new Set()
    waiting.set(owner, set.add(target))
    places.set(target, { set, isEntered })
  }
  const putAt = (
    map: Map<number, Waiting<target>>,
    number: number,
    target: target,
    isEntered: boolean,
  ) => {
    const waiting = map.get(number) ?? new Map()
    map.set(number, waiting)
    put(waiting, target, isEntered)
  }

  const drop = (waiting: Waiting<target> | undefined, owner: string, set: Set<target>): boolean =>
    waiting?.get(owner) === set && waiting.delete(owner) && waiting.size === 0
  /** Takes a target out of its set. Empty sets do not stay behind. */
  const take = (target: target): Place<target> | undefined => {
    const place = places.get(target)
    if (!place?.set.delete(target) || place.set.size > 0) return place
    const { from, to } = target.query
    const owner = ownerOf(target)
    if (drop(byFirst.get(from), owner, place.set)) byFirst.delete(from)
    if (drop(byLast.get(to), owner, place.set)) byLast.delete(to)
    drop(endless, owner, place.set)
    drop(over, owner, place.set)
    return place
  }

  /** Puts a target where it belongs now; the cost of that. */
  const settle = (target: target): number => {
    const isEntered = take(target)?.isEntered ?? false
    const { from, to } = target.query
    const isAhead = reached !== undefined && from > reached + earlyBlocks
    const isOver = reached !== undefined && to < reached - keptBlocks
    const isWanted = !isAhead && !isOver
    if (isAhead) putAt(byFirst, from, target, false)
    else if (isOver) put(over, target, false)
    else if (to === Number.POSITIVE_INFINITY) put(endless, target, true)
    else putAt(byLast, to, target, true)
    if (isWanted === isEntered) return 1
    if (isWanted) sink.enter(target)
    else sink.leave(target)
    return sink.costOf(target)
  }

  const settleSome = (owner: string) => {
    const lists = due.get(owner) ?? []
    let left = sink.perTurn
    for (let first = lists[0]; first; first = lists[0]) {
      for (const target of first.targets) {
        if (sink.costOf(target) > left && left < sink.perTurn)
          return sink.inTurn(owner, () => settleSome(owner))
        left -= settle(target)
      }
      lists.shift()
    }
    due.delete(owner)
  }
  const settleLater = (waiting: Waiting<target>, by: number) => {
    for (const [owner, targets] of waiting) {
      const lists = due.get(owner)
      if (lists) lists.push({ targets, by })
      else {
        due.set(owner, [{ targets, by }])
        sink.inTurn(owner, () => settleSome(owner))
      }
    }
  }

  /** Takes those of the numbers after `from` up to `to`. */
  const takeBetween = (map: Map<number, Waiting<target>>, from: number, to: number) => {
    const found: [number, Waiting<target>][] = []
    const look = (number: number, waiting: Waiting<target> | undefined) => {
      if (waiting && number > from && number <= to) found.push([number, waiting])
    }
    if (to - from > map.size) for (const [number, waiting] of map) look(number, waiting)
    else for (let number = from + 1; number <= to; number++) look(number, map.get(number))
    for (const [number] of found) map.delete(number)
    return found
  }

  const settleAll = () => {
    const comesAgain = over
    over = new Map()
    settleLater(comesAgain, 0)
    const entered = endless
    endless = new Map()
    settleLater(entered, Number.POSITIVE_INFINITY)
    for (const [, waiting] of takeBetween(byLast, -1, Number.POSITIVE_INFINITY))
      settleLater(waiting, Number.POSITIVE_INFINITY)
  }

  /** What must be at its place for the blocks up to that number and is not. */
  const whenEntered = (number: number): true | Promise<void> => {
    const late: Set<target>[] = []
    for (const lists of due.values())
      for (const { targets, by } of lists) if (by <= number && targets.size > 0) late.push(targets)
    if (late.length === 0) return true
    return new Promise((resolve) => {
      const look = () => {
        while (late.at(-1)?.size === 0) late.pop()
        if (late.length > 0) setImmediate(look)
        else resolve()
      }
      look()
    })
  }

  return {
    add(target) {
      // No block has come since the last target left.
      if (places.size === 0) reached = undefined
      settle(target)
    },
    remove(target) {
      const place = take(target)
      places.delete(target)
      if (place?.isEntered) sink.leave(target)
    },
    reach(number) {
      const before = reached
      if (before === undefined || number < before - keptBlocks) {
        // The first block, or the chain began anew.
        reached = number
        settleAll()
      } else if (number > before) {
        reached = number
        for (const [first, waiting] of takeBetween(
          byFirst,
          before + earlyBlocks,
          number + earlyBlocks,
        ))
          settleLater(waiting, first)
        // One more below: what was added meanwhile was placed by the block before.
        const last = number - keptBlocks - 1
        for (const [, waiting] of takeBetween(byLast, before - keptBlocks - 1, last))
          settleLater(waiting, Number.POSITIVE_INFINITY)
      }
      return whenEntered(number)
    },
  }
}
