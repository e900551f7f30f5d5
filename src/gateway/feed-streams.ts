import type { Pool, RawJson } from '../chains/upstream/pool-types.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { createFeed, type Feed, type FeedOptions } from './feed.ts'
import { createFilters, type Filters } from './filters.ts'
import { createLogIndex } from './log-index.ts'
import { createPending } from './pending.ts'
import {
  createSubscriptions,
  type LogListener,
  type Receiver,
  type Subscriptions,
  tellLogs,
} from './subscriptions.ts'
import { type Client, createClient } from './subscriptions-client.ts'
import { createSyncing } from './syncing.ts'

/** Everything of a network that is pushed or gathered: all of it reads one feed. */
export type Streams = {
  feed: Feed
  filters: Filters
  subscriptions: Subscriptions
  /** The book of subscriptions of a connection of this key. */
  open(receiver: Receiver, credential_id: string): Client
  stop(): void
}

/** How to build the streams. */
export type StreamsOptions = {
  pool: Pool
  prefix: string
  clock: Clock
  log: Log
  ids: Ids
  encode(text: RawJson): Buffer
  subscriptionsPerKey: number
  filtersPerKey: number
  feed?: Partial<FeedOptions>
}

/** Joins the feed with all who listen to it. */
export function createStreams(options: StreamsOptions): Streams {
  const { pool, ids, clock, encode, subscriptionsPerKey: limit } = options
  const index = createLogIndex<LogListener>()
  const pending = createPending({
    pool,
    tell: (hash) => {
      filters.pending(hash)
      subscriptions.pending(hash)
    },
  })
  const syncing = createSyncing({ ...options, tell: (value) => subscriptions.syncing(value) })
  const feed = createFeed({
    ...options,
    ...options.feed,
    sink: {
      removed(blocks, added) {
        for (const block of blocks)
          if (block.isLogged && block.logs) tellLogs(index, block, block.logs, true)
        pending.removed(blocks, added)
      },
      header(block) {
        filters.header(block)
        subscriptions.header(block)
      },
      logs: (block, logs) => tellLogs(index, block, logs, false),
      lost(reason, what) {
        filters.lost(what)
        subscriptions.lost(reason, what)
      },
    },
  })
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
    maxPerKey: options.filtersPerKey,
  })
  const counts = new Map<string, number>()

  return {
    feed,
    filters,
    subscriptions,
    open: (receiver, credential_id) =>
      createClient({
        subscriptions,
        receiver,
        quota: {
          limit,
          take: () => {
            const count = counts.get(credential_id) ?? 0
            if (count < limit) counts.set(credential_id, count + 1)
            return count < limit
          },
          give: () => {
            const left = (counts.get(credential_id) ?? 1) - 1
            if (left > 0) counts.set(credential_id, left)
            else counts.delete(credential_id)
          },
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
