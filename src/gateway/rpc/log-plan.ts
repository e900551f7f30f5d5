// What `getLogs` asks of the nodes: the range of a filter as block numbers, and under which key the answer is kept.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import type { Progress } from '../cache/progress.ts'
import type { Session } from '../streams/session.ts'
import { filterHash, type LogFilter } from './check-filter.ts'
import { isQuantity } from './encodings.ts'
import { heightOf, isContradictory, ranged, written } from './log-range.ts'
import type { Method } from './methods.ts'
import { plainFilter } from './topics.ts'

/** What is asked of the nodes. */
export type LogPlan = {
  key: string
  params: RawJson
  filter: LogFilter
  /** Logs with fewer topics are left out. */
  leastTopics: number
  /** The range that may be asked for in parts; -1 where it may not. */
  from: number
  to: number
  /** The block that the answer depends on; -1 and empty when not known. */
  number: number
  hash: string
  minBlock: number
  isKept: boolean
  /** One block by a hash that is not among the last ones of the chain. */
  isUnknownHash: boolean
}

/** Makes queries of filters, as the chain and the client's progress are at that moment. */
export function createLogPlanner(options: {
  view: Canonical
  progress: Progress
  maxLogRange: number
  /** Whether answers are kept at all. */
  isCached: boolean
}) {
  const { view, progress, maxLogRange, isCached } = options

  const plan = (method: Method, raw: RawJson, given: LogFilter, session: Session): LogPlan => {
    const head = progress.usableHead(session)
    const minBlock = progress.lowest(session)
    const { filter, leastTopics } = plainFilter(given)
    const params = written(given, filter, raw, filter === given)
    // The plan where nothing is known: a node gets the parameters of the client, and the answer is not kept.
    // The lowest block is part of the key, so that keys which have seen different heads do not share an
    // answer.
    const live: LogPlan = {
      key: `${method.name}>${minBlock}${raw}`,
      params,
      filter,
      leastTopics,
      from: -1,
      to: -1,
      number: -1,
      hash: '',
      minBlock,
      isKept: false,
      isUnknownHash: false,
    }
    // A range beside a hash: every node has its own error for it, which the client gets.
    if (isContradictory(given)) return live
    const hash = filterHash(given)?.toLowerCase()
    if (hash !== undefined) {
      const number = view.numberOf(hash) ?? -1
      // Of a hash that is not in the window it is not known whether it is canonical: `confirm` asks for the
      // block.
      const isKnown = number >= 0
      const key = method.name + raw
      return { ...live, key, number, hash, isKept: isKnown, isUnknownHash: !isKnown }
    }
    const isFixed = isQuantity(given.fromBlock) && isQuantity(given.toBlock)
    const isPending = given.fromBlock === 'pending' || given.toBlock === 'pending'
    // Pending logs have no block that an entry could be removed with.
    if (isPending || (!head && !isFixed)) return live
    const height = head?.number ?? -1
    const from = heightOf(given.fromBlock, height)
    const to = heightOf(given.toBlock, height)
    // A range that runs backwards or begins after the head: nodes say what they think of it.
    if (from > to || (head && from > height)) return live
    // What lies beyond the head may be there already: a node is asked as the client asked.
    if (!isCached || !head || to > height) return { ...live, from, to }
    return {
      ...live,
      key: isFixed ? method.name + raw : `${method.name}@${height}${raw}`,
      params: isFixed ? params : ranged(filter, from, to),
      from,
      to,
      number: to,
      hash: view.hashAt(to) ?? (to === height ? head.hash : ''),
      // A node below the end of the range would leave logs out without an error.
      minBlock: minBlock < 0 ? -1 : Math.max(to, progress.leastOf(session)),
      isKept: true,
    }
  }

  /** The first block of a filter that covers too many, as far as the chain reaches; -1 where it does not. */
  const tooWideFrom = ({ fromBlock, toBlock }: LogFilter, session: Session): number => {
    const height = Math.max(view.head()?.number ?? -1, session.highest)
    const from = heightOf(fromBlock, height)
    const to = heightOf(toBlock, height)
    // `latest` and numbers beyond the head count as the head: the limit is on blocks that exist.
    const end = height < 0 ? to : Math.min(to, height)
    return from >= 0 && end - from >= maxLogRange ? from : -1
  }

  return { plan, tooWideFrom }
}
