// Subscriptions and filters of the gateway. One feed per network reads the canonical chain and fetches each
// block once for all clients. This folder uses `chains/evm/canonical`, the pool and `lib`. It guarantees that
// all clients of a network see the same order of heads, logs and removals, that a slow client is closed instead
// of buffered without bound, and that nothing is fetched without a subscriber.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Pool, RawJson } from '../../chains/evm/pool/pool-types.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { type Refusal, refuse } from '../rpc/rpc-error.ts'
import { createSyncing } from '../rpc/syncing.ts'
import { createFeed, type Feed, type FeedOptions } from './feed.ts'
import { type FilterBudget, type Owner, termsPerTurn } from './filter-budget.ts'
import { createFilters, type Filters } from './filters.ts'
import { createLogIndex } from './log-index.ts'
import { createPending } from './pending.ts'
import {
  createSubscriptions,
  type LogListener,
  type Subscriber,
  type Subscriptions,
  sendLogs,
} from './subscriptions.ts'
import { type Client, createClient } from './subscriptions-client.ts'

/** Everything of a network that is pushed or gathered: all of it reads one feed. */
export type Streams = {
  feed: Feed
  filters: Filters
  subscriptions: Subscriptions
  /** The book of subscriptions of a connection of this key. */
  open(subscriber: Subscriber, owner: Owner): Client
  stop(): void
}

/** How to build the streams. */
export type StreamsOptions = {
  pool: Pool
  canonical: Canonical
  prefix: string
  clock: Clock
  log: Log
  ids: Ids
  encode(text: RawJson): Buffer
  subscriptionsPerKey: number
  filtersPerKey: number
  /** Shared by all networks. */
  budget: FilterBudget
  feed?: Partial<FeedOptions>
}

/** Connects the feed with its subscribers. */
export function createStreams(options: StreamsOptions): Streams {
  const { pool, ids, clock, encode, budget, subscriptionsPerKey: limit } = options
  const index = createLogIndex<LogListener>((organization_id, act) =>
    budget.inTurn(organization_id, termsPerTurn, act),
  )
  // Hashes of pending transactions come from nodes and not from the feed, but a removed block makes its own pending again.
  const pending = createPending({
    pool,
    notify: (hash) => {
      filters.pending(hash)
      subscriptions.pending(hash)
    },
  })
  const syncing = createSyncing({ ...options, notify: (value) => subscriptions.syncing(value) })
  const feed = createFeed({
    ...options,
    ...options.feed,
    sink: {
      async removed(blocks, added) {
        // All logs first: while those of one block are sent, the feed may drop those of another to save memory.
        const sent = blocks.flatMap((block) =>
          block.isLogged && block.logs ? [{ block, logs: block.logs }] : [],
        )
        for (const { block, logs } of sent) {
          await sendLogs({ index, block, logs, removed: true })
          await nextTurn()
        }
        pending.removed(blocks, added)
      },
      header(block) {
        filters.header(block)
        return subscriptions.header(block)
      },
      logs: (block, logs) => sendLogs({ index, block, logs, removed: false }),
      lost(reason, what) {
        filters.lost(what)
        subscriptions.lost(reason, what)
      },
    },
  })
  // The feed is given as a function, because the feed and its sinks refer to each other.
  const subscriptions: Subscriptions = createSubscriptions({
    feed: () => feed,
    index,
    pending,
    syncing,
    ids,
    encode,
  })
  const filters: Filters = createFilters({
    feed: () => feed,
    index,
    pending,
    clock,
    ids,
    budget,
    maxPerKey: options.filtersPerKey,
  })
  // Subscriptions by key over all its connections of the network.
  const counts = new Map<string, number>()
  const tooMany = refuse('TOO_MANY_OPEN', `The key has ${limit} subscriptions already.`, { limit })

  const takeOne = (owner: Owner, terms: number): (() => void) | Refusal => {
    const { credential_id } = owner
    const count = counts.get(credential_id) ?? 0
    if (count >= limit) return tooMany
    const release = budget.take(owner, terms)
    if ('reason' in release) return release
    // Counted last: a refusal of the budget must leave no count behind.
    counts.set(credential_id, count + 1)
    return () => {
      release()
      const left = (counts.get(credential_id) ?? 1) - 1
      if (left > 0) counts.set(credential_id, left)
      else counts.delete(credential_id)
    }
  }

  return {
    feed,
    filters,
    subscriptions,
    open: (subscriber, owner) =>
      createClient({
        subscriptions,
        subscriber,
        quota: {
          organization_id: owner.organization_id,
          take: (terms) => takeOne(owner, terms),
          inTurn: (terms, act) => budget.inTurn(owner.organization_id, terms, act),
        },
      }),
    stop() {
      filters.stop()
      pending.stop()
      syncing.stop()
      feed.stop()
    },
  }
}
