// Which subscriptions and filters want a log. A look-up by address and topic, because comparing each log with each
// subscription costs their product (bench/RESULTS.md: 5,000 logs against 100,000 subscriptions take 8.4 ms of CPU).

import { createLargeMap, type LargeMap } from '../../lib/large-map.ts'
import { createTurns } from '../../lib/turns.ts'
import { createLogRanges } from '../rpc/log-ranges.ts'
import { type LogKeys, type LogQuery, matchesBlock, matchesKeys } from '../rpc/topics.ts'
import { smallTerms, termsOfOne, termsPerTurn } from './filter-budget.ts'

/** A listener for logs. The work for those of one organization is done in its turns. */
export type LogTarget = { query: LogQuery; organization_id?: string }

/** Finds the subscribers of a log without a scan of all of them. */
export type LogIndex<target extends LogTarget> = {
  add(target: target): void
  remove(target: target): void
  /** The logs that are matched next are those of this block; true, or a promise to wait for. */
  reach(block: { number: number; hash: string }): true | Promise<void>
  /** Sets that have each target that wants this log of the block once, among others. Looking at them may take long. */
  find(log: LogKeys): Iterable<target>[]
  wants(target: target, log: LogKeys): boolean
  /** Calls `visit` once with each target that wants this log of the block. */
  match(log: LogKeys, visit: (target: target) => void): void
  size(): number
}

type Places<target> = {
  /** Those without a distinguishing topic. */
  plain: Set<target>
  /** By position and topic. */
  topics: (LargeMap<Set<target>> | undefined)[]
}

const isTarget = <target extends LogTarget>(one: target | Places<target>): one is target =>
  'query' in one

// A query of 1,000 addresses with 1,000 topics each must not take a million places.
const maxPlaces = 1_000

/**
 * An index over address and topic. Each target stands at the places of one position only, the one that
 * is most selective, so that a log finds it at most once; the rest of its query is compared then.
 */
export function createLogIndex<target extends LogTarget>(
  inTurn: (organization_id: string, act: () => void) => void = createTurns({
    perClient: 0,
    perTurn: 1,
  }).run,
): LogIndex<target> {
  const anywhere: Places<target> = { plain: new Set(), topics: [] }
  // Most addresses have one target without topics. It stands there itself, without sets for each address.
  const byAddress = createLargeMap<target | Places<target>>()
  const byHash = new Map<string, Set<target>>()
  let ofHash: ReadonlySet<target> | undefined
  let block = { number: 0, hash: '' }
  let size = 0

  const eachPlace = (query: LogQuery, visit: (address: string | undefined) => void) => {
    if (usesAddresses(query)) for (const address of query.addresses ?? []) visit(address)
    else visit(undefined)
  }

  const put = (places: Places<target>, target: target) => {
    const position = positionOf(target.query)
    if (position < 0) return void places.plain.add(target)
    places.topics[position] ??= createLargeMap()
    const map = places.topics[position]
    for (const topic of target.query.topics[position] ?? []) {
      const there = map.get(topic)
      if (there) there.add(target)
      else map.set(topic, new Set([target]))
    }
  }

  const take = (places: Places<target>, target: target) => {
    const position = positionOf(target.query)
    if (position < 0) return void places.plain.delete(target)
    const map = places.topics[position]
    for (const topic of target.query.topics[position] ?? []) {
      const there = map?.get(topic)
      if (there?.delete(target) && there.size === 0) map?.delete(topic)
    }
    if (map?.isEmpty()) places.topics[position] = undefined
  }

  const placesAt = (address: string): Places<target> => {
    const there = byAddress.get(address)
    if (there && !isTarget(there)) return there
    const places: Places<target> = { plain: new Set(there && [there]), topics: [] }
    byAddress.set(address, places)
    return places
  }

  const enter = (target: target) => {
    const isPlain = positionOf(target.query) < 0
    eachPlace(target.query, (address) => {
      if (address === undefined) put(anywhere, target)
      else if (isPlain && byAddress.get(address) === undefined) byAddress.set(address, target)
      else put(placesAt(address), target)
    })
  }

  const leave = (target: target) =>
    eachPlace(target.query, (address) => {
      if (address === undefined) return take(anywhere, target)
      const there = byAddress.get(address)
      if (there === target) byAddress.delete(address)
      if (!there || isTarget(there)) return
      take(there, target)
      if (there.plain.size === 0 && there.topics.every((map) => map === undefined))
        byAddress.delete(address)
    })

  const ranges = createLogRanges<target>({
    ...{ enter, leave, inTurn, perTurn: termsPerTurn },
    costOf: (target) => Math.max(termsOf(target), termsOfOne),
  })

  // Removed, but still at their places: a client can end a hundred large ones in one turn of the event loop.
  const removed = new Set<target>()
  const removeSome = () => {
    let terms = 0
    for (const target of removed) {
      if (terms > 0 && terms + termsOf(target) > termsPerTurn) return void setImmediate(removeSome)
      terms += termsOf(target)
      removed.delete(target)
      ranges.remove(target)
    }
  }

  const wants = (target: target, log: LogKeys): boolean =>
    matchesKeys(target.query, log) &&
    matchesBlock(target.query, block.number, block.hash) &&
    !removed.has(target)

  const addPlaces = (
    { plain, topics }: Places<target>,
    log: LogKeys,
    found: Iterable<target>[],
  ) => {
    if (plain.size > 0) found.push(plain)
    for (let position = 0; position < topics.length; position++) {
      const set = topics[position]?.get(log.topics[position] as string)
      if (set) found.push(set)
    }
  }

  const find = (log: LogKeys): Iterable<target>[] => {
    const found: Iterable<target>[] = []
    const there = byAddress.get(log.address)
    if (there && isTarget(there)) found.push([there])
    else if (there) addPlaces(there, log, found)
    addPlaces(anywhere, log, found)
    if (ofHash) found.push(ofHash)
    return found
  }

  return {
    add(target) {
      size++
      const { hash } = target.query
      if (hash === undefined) return ranges.add(target)
      const there = byHash.get(hash)
      if (there) there.add(target)
      else byHash.set(hash, new Set([target]))
    },
    remove(target) {
      size--
      const { hash } = target.query
      if (hash === undefined) {
        if (termsOf(target) <= smallTerms) return ranges.remove(target)
        if (removed.size === 0) setImmediate(removeSome)
        return void removed.add(target)
      }
      const there = byHash.get(hash)
      if (there?.delete(target) && there.size === 0) byHash.delete(hash)
    },
    reach(next) {
      block = next
      ofHash = byHash.get(next.hash)
      return ranges.reach(next.number)
    },
    find,
    wants,
    match(log, visit) {
      for (const some of find(log)) for (const target of some) if (wants(target, log)) visit(target)
    },
    size: () => size,
  }
}

/** The most selective position: an indexed value rather than the event, few values rather than many. */
function positionOf(query: LogQuery): number {
  const room = usesAddresses(query) ? maxPlaces / (query.addresses?.size ?? 1) : maxPlaces
  let best = -1
  let fewest = Number.POSITIVE_INFINITY
  for (let position = query.topics.length - 1; position >= 0; position--) {
    const size = query.topics[position]?.size ?? Number.POSITIVE_INFINITY
    const weight = position === 0 ? size * maxPlaces : size
    if (size <= room && weight < fewest) {
      best = position
      fewest = weight
    }
  }
  return best
}

const termsOf = ({ query: { addresses, topics } }: LogTarget): number =>
  topics.reduce((sum, topic) => sum + (topic?.size ?? 0), addresses?.size ?? 0)

const usesAddresses = ({ addresses }: LogQuery): boolean => addresses !== undefined
