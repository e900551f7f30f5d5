// Filters of blocks, logs and pending transactions. They live in this process and not in a node: the node that is asked
// next would not know the filter of another one. All of them read the one feed of the network, so a thousand filters of one
// kind cost the nodes no more than one.

import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { filterIdleMinutes } from '../../contract/limits.ts'
import { notificationBuffer } from '../../contract/operations/gateway.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Ids } from '../../lib/ids.ts'
import { inPieces, type Pieces } from '../../lib/pieces.ts'
import { answered, type Dispatch, failed, type OnAnswer, refused } from '../rpc/answer.ts'
import { findRangeProblem, type LogFilter } from '../rpc/check-filter.ts'
import { refuse } from '../rpc/rpc-error.ts'
import { compileLogQuery, type LogQuery } from '../rpc/topics.ts'
import type { Feed } from './feed.ts'
import type { FeedBlock } from './feed-block.ts'
import { type FilterBudget, type Owner, termsOf, termsOfOne } from './filter-budget.ts'
import type { LogIndex } from './log-index.ts'
import type { Demand } from './pending.ts'
import type { Session } from './session.ts'
import { type LogListener, newId } from './subscriptions.ts'
import { whenBegun } from './when-begun.ts'

/** The filters of one network: they live here and not in a node, and belong to the API key. */
export type Filters = {
  dispatch: Dispatch
  /** What a filter of logs of this key was made with. */
  filterOf(id: unknown, session: Session): LogFilter | undefined
  header(block: FeedBlock): void
  pending(hash: string): void
  /** What filters of blocks and logs, or of logs alone, have gathered has a gap now. */
  lost(what: 'chain' | 'logs'): void
  size(): number
  stop(): void
}

type Filter = {
  id: string
  owner: string
  /** When it was last asked for its changes. */
  used: number
  take(): RawJson | undefined
  kind: 'blocks' | 'logs' | 'pending'
  given?: LogFilter
  close(): void
  /** Gives back what it takes of the budget. */
  release(): void
}

// One answer for a filter that never was, that is gone, and that belongs to another key.
const notFound = refused(refuse('FILTER_NOT_FOUND', 'filter not found'))
const yes = answered('true')
const no = answered('false')
// Idle filters go within five seconds of their time; `find` treats them as gone at once.
const sweepMs = 5_000
const filterData = { parameter: 'filter', index: 0 }

/** What one kind of filter gathers. */
type FilterKind = Pick<Filter, 'kind' | 'take' | 'given' | 'close'>

/** What a key holds: the number of its filters, and the bytes of logs that they have gathered. */
type Holder = { filters: number; bytes: number }

/** A filter that is counted, and may still be made. */
type Admitted = { owner: string; holder: Holder; release(): void; done: OnAnswer }

/** Makes the filters. */
export function createFilters(options: {
  feed(): Feed
  index: LogIndex<LogListener>
  pending: Demand
  clock: Clock
  ids: Ids
  budget: FilterBudget
  /** Filled by clients; `TOO_MANY_OPEN` beyond it. */
  maxPerKey: number
  idleMs?: number
  /** Changes that one filter gathers; with more it is gone, rather than that some are missing. */
  maxChanges?: number
  /** Bytes of logs that all filters of a key gather. */
  maxBytes?: number
  /** Of the processor, for work that is done in pieces. */
  now?: () => number
}): Filters {
  const { feed, index, pending, clock, ids, budget, maxPerKey, now } = options
  const {
    idleMs = filterIdleMinutes * 60_000,
    // As many as a subscriber may leave unread.
    maxChanges = notificationBuffer,
    maxBytes = 16_777_216,
  } = options
  // The longest unused first.
  const filters = new Map<string, Filter>()
  // Only keys that hold a filter have an entry, so the budget of filters bounds it.
  const owners = new Map<string, Holder>()
  const blocks = createChanges(maxChanges)
  const transactions = createChanges(maxChanges)
  const stopped = new AbortController()
  let isSweeping = false
  const tooMany = refused(
    refuse('TOO_MANY_OPEN', `The key has ${maxPerKey} filters already.`, { limit: maxPerKey }),
  )

  // All ways out lead here, so that budget and counters are given back exactly once.
  const drop = (filter: Filter) => {
    if (!filters.delete(filter.id)) return
    filter.close()
    giveBack(filter)
  }

  const use = (filter: Filter) => {
    filter.used = clock.now()
    // Inserted again at the end: the map stays in the order of use, and a sweep stops at the first fresh one.
    filters.delete(filter.id)
    filters.set(filter.id, filter)
  }

  const isIdle = ({ used }: Filter) => clock.now() - used >= idleMs

  function* dropIdle(): Pieces {
    for (const filter of filters.values()) {
      if (!isIdle(filter)) break
      drop(filter)
      yield
    }
  }
  const sweep = async () => {
    isSweeping = true
    while (filters.size > 0 && !stopped.signal.aborted) {
      await clock.sleep(sweepMs, stopped.signal).catch(() => {})
      await inPieces(dropIdle(), now)
    }
    isSweeping = false
  }

  /** Counts a filter against the limits; what then adds it may be called later. */
  const admit = (who: Owner, terms: number, done: OnAnswer): Admitted | undefined => {
    const owner = who.credential_id
    const holder = owners.get(owner) ?? { filters: 0, bytes: 0 }
    if (holder.filters >= maxPerKey) {
      done(tooMany)
      return undefined
    }
    const release = budget.take(who, terms)
    if ('reason' in release) {
      done(refused(release))
      return undefined
    }
    // Counted before the feed has begun: concurrent requests of one key cannot exceed its limit.
    holder.filters++
    owners.set(owner, holder)
    return { owner, holder, release, done }
  }

  const giveBack = ({ owner, release }: Pick<Filter, 'owner' | 'release'>) => {
    release()
    const holder = owners.get(owner)
    if (holder && --holder.filters === 0) owners.delete(owner)
  }

  const add = ({ owner, release, done }: Admitted, kind: FilterKind) => {
    const id = newId(ids)
    const filter: Filter = { ...kind, id, owner, release, used: clock.now() }
    filters.set(id, filter)
    if (!isSweeping) void sweep()
    whenBegun({ feed: feed(), ...(filter.kind === 'pending' && { pending }) }, (isBegun) => {
      filter.used = clock.now()
      // A filter without a starting block could miss changes without a sign of it.
      if (!isBegun) drop(filter)
      done(isBegun ? answered(`"${id}"`) : failed('NO_UPSTREAM'))
    })
  }

  const find = (id: unknown, owner: string): Filter | undefined => {
    const filter = filters.get(String(id).toLowerCase())
    if (!filter || filter.owner !== owner) return undefined
    // Between two sweeps an idle filter must look as gone as after them.
    if (!isIdle(filter)) return filter
    drop(filter)
    return undefined
  }

  const addLogFilter = (owner: Owner, given: LogFilter, done: OnAnswer) => {
    const problem = findRangeProblem(given)
    if (problem)
      return done(refused(refuse('INVALID_PARAMS', `parameter 1 (filter) ${problem}`, filterData)))
    const terms = termsOf(given)
    const admitted = admit(owner, terms, done)
    if (!admitted) return
    const step = (act: () => void) =>
      budget.inTurn(owner.organization_id, terms, () => {
        if (!stopped.signal.aborted) return act()
        giveBack(admitted)
        done(failed('ABORTED'))
      })
    step(() => {
      const query = compileLogQuery(given)
      const { holder } = admitted
      const { organization_id } = owner
      const bounds = { maxChanges, maxBytes }
      step(() =>
        add(
          admitted,
          logFilter({ given, query, organization_id, holder, feed: feed(), index, ...bounds }),
        ),
      )
    })
  }

  const addSmall = (owner: Owner, make: () => FilterKind, done: OnAnswer) => {
    const admitted = admit(owner, termsOfOne, done)
    if (admitted) add(admitted, make())
  }

  const takeChanges = (filter: Filter | undefined, done: OnAnswer) => {
    const changes = filter?.take()
    if (filter && changes !== undefined) {
      use(filter)
      return done(answered(changes))
    }
    if (filter) drop(filter)
    done(notFound)
  }

  return {
    dispatch({ name }, { args }, { principal }, done) {
      const owner = principal.credential_id
      switch (name.slice(name.indexOf('_') + 1)) {
        case 'newBlockFilter':
          return addSmall(principal, () => blockFilter(feed(), blocks), done)
        case 'newPendingTransactionFilter':
          return addSmall(principal, () => pendingFilter(feed(), pending, transactions), done)
        case 'newFilter':
          return addLogFilter(principal, args[0] as LogFilter, done)
        case 'getFilterChanges':
          return takeChanges(find(args[0], owner), done)
        default: {
          const filter = find(args[0], owner)
          if (filter) drop(filter)
          return done(filter ? yes : no)
        }
      }
    },
    filterOf(id, { principal }) {
      const filter = find(id, principal.credential_id)
      if (filter?.given) use(filter)
      return filter?.given
    },
    header: ({ hash }) => blocks.push(`"${hash}"`),
    pending: (hash) => transactions.push(`"${hash}"`),
    // Clients get `filter not found` and start over, instead of changes with a gap.
    lost(what) {
      for (const filter of [...filters.values()])
        if (filter.kind === 'logs' || (filter.kind === 'blocks' && what === 'chain')) drop(filter)
    },
    size: () => filters.size,
    stop() {
      stopped.abort()
      for (const filter of [...filters.values()]) drop(filter)
    },
  }
}

// A filter of hashes keeps a place in the shared list of changes instead of a list of its own.
function takeFrom(changes: Changes): Filter['take'] {
  let place = changes.end()
  return () => {
    const hashes = changes.since(place)
    place = changes.end()
    return hashes && `[${hashes.join()}]`
  }
}

const blockFilter = (feed: Feed, blocks: Changes): FilterKind => ({
  kind: 'blocks',
  take: takeFrom(blocks),
  close: feed.need('headers'),
})

const pendingFilter = (feed: Feed, pending: Demand, transactions: Changes): FilterKind => {
  const take = takeFrom(transactions)
  const releases = [pending.need(), feed.need('headers')]
  return {
    kind: 'pending',
    take,
    close: () => {
      for (const release of releases) release()
    },
  }
}

/** Gathers the texts of the logs that match. */
function logFilter(options: {
  given: LogFilter
  query: LogQuery
  organization_id: string
  holder: Holder
  feed: Feed
  index: LogIndex<LogListener>
  maxChanges: number
  maxBytes: number
}): FilterKind {
  const { given, query, organization_id, holder, feed, index, maxChanges, maxBytes } = options
  // Blocks before the filter was made are not its changes, also when their logs arrive later.
  const since = feed.order()
  let logs: RawJson[] = []
  let bytes = 0
  let isFull = false
  const empty = () => {
    holder.bytes -= bytes
    logs = []
    bytes = 0
  }
  const listener: LogListener = {
    query,
    organization_id,
    notify(text, { order }) {
      if (order <= since || isFull) return undefined
      // A full filter is gone at the next poll: a gap in its changes would go unnoticed.
      isFull = logs.length >= maxChanges || holder.bytes + text.length > maxBytes
      if (isFull) empty()
      else {
        logs.push(text)
        bytes += text.length
        holder.bytes += text.length
      }
      return undefined
    },
  }
  index.add(listener)
  const release = feed.need('logs')
  return {
    kind: 'logs',
    given,
    take: () => {
      if (isFull) return undefined
      const changes = `[${logs.join()}]`
      empty()
      return changes
    },
    close: () => {
      empty()
      // The logs of a block are sent in pieces: a log may be on its way to this filter.
      isFull = true
      index.remove(listener)
      release()
    },
  }
}

/** The last values of a stream, for any number of readers at their own pace. */
type Changes = {
  push(value: string): void
  /** The place after the last value. */
  end(): number
  /** What came after a place; undefined when some of it is gone. */
  since(place: number): string[] | undefined
}

/** Keeps at most that many values. */
function createChanges(max: number): Changes {
  let values: string[] = []
  let first = 0
  return {
    push(value) {
      values.push(value)
      // In large steps, so that each value is moved once on average.
      if (values.length < 2 * max) return
      first += values.length - max
      values = values.slice(-max)
    },
    end: () => first + values.length,
    since: (place) =>
      place < first || first + values.length - place > max
        ? undefined
        : values.slice(place - first),
  }
}
