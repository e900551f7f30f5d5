// All subscriptions of a network. Equal ones of different connections are one group with one id, so that a notification is
// encoded once and the same bytes go to every socket of the group. Only a replay is encoded for its own client.

import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { notificationBuffer } from '../../contract/operations/gateway.ts'
import type { Ids } from '../../lib/ids.ts'
import { inPieces, type Pieces } from '../../lib/pieces.ts'
import type { Syncing } from '../rpc/syncing.ts'
import { keyOfQuery, type LogQuery, matchesBlock, matchesKeys } from '../rpc/topics.ts'
import type { Feed } from './feed.ts'
import { type FeedBlock, type FeedLog, logText } from './feed-block.ts'
import type { FeedPath } from './feed-replay.ts'
import type { LogIndex, LogTarget } from './log-index.ts'
import type { Demand } from './pending.ts'
import { whenBegun } from './when-begun.ts'

/** A connection that takes notifications of its subscriptions. */
export type Subscriber = {
  /** Takes a notification, never waits; it is shared with others and must not be changed. */
  push(frame: Buffer): void
  close(code: number, reason: string): void
}

/** What can be subscribed to. */
export type Topic =
  | { name: 'newHeads' }
  | { name: 'logs'; query: LogQuery }
  | { name: 'newPendingTransactions' }
  | { name: 'syncing' }

/** Called for every log that matches its query. */
export type LogListener = LogTarget & {
  /** What is left to do where that is much. */
  notify(text: RawJson, block: { order: number }): Pieces | undefined
}

/** One subscription of one connection. */
export type Subscription = { id: string; cancel(): void }

/** How a connection subscribes. */
export type Order = {
  /** Of the notifications. */
  method: string
  /** Equal for subscriptions that share everything; a connection has one of a kind. */
  key: string
  /** Whose turns are taken for it. */
  organization_id: string
}

/** All subscriptions of one network. */
export type Subscriptions = {
  /** Subscribes. Notifications go out at once: the caller holds them back until it has answered. */
  add(subscriber: Subscriber, topic: Topic, order: Order): Subscription
  /** Resolves when later blocks will be delivered; false when no node is reachable. */
  whenBegun(topic: Topic, go: (isBegun: boolean) => void): void
  /** Subscribes from a block on; false when that block is not known any more. */
  resume(
    subscriber: Subscriber,
    topic: Topic,
    order: Order,
    from: string,
    /** Called before the first notification. */
    begin: (subscription: Subscription) => void,
  ): Promise<boolean>
  /** Undefined when all have it, otherwise a promise of that. */
  header(block: FeedBlock): Promise<void> | undefined
  pending(hash: string): void
  syncing(value: RawJson): void
  lost(reason: string, what: 'chain' | 'logs'): void
  size(): number
  notifications(): number
}

/**
 * Equal subscriptions of any number of connections. They have one id, which is the connection's own
 * affair, and so one frame for all of them.
 */
type Group = LogListener & {
  key: string
  id: string
  /** The notification up to its result. */
  lead: RawJson
  topic: Topic
  /** Each with the order of the last header before it came. */
  members: Map<Subscriber, number>
  release(): void
}

const longestKey = 256
/** Frames that are sent, and targets that are looked at, without a look at the clock. */
const [framesPerPiece, looksPerPiece] = [16, 64]
/** Pending transactions that wait until those before are sent to all: as many as a subscriber may leave unread. */
const maxHashes = notificationBuffer

const anything: LogQuery = {
  addresses: undefined,
  topics: [],
  from: 0,
  to: Number.POSITIVE_INFINITY,
  hash: undefined,
}

/** Makes the board of subscriptions. */
export function createSubscriptions(options: {
  feed(): Feed
  index: LogIndex<LogListener>
  pending: Demand
  syncing: Syncing
  ids: Ids
  /** Makes a message of a connection out of a text. */
  encode(text: RawJson): Buffer
  now?: () => number
}): Subscriptions {
  const { feed, index, pending, syncing, ids, encode, now } = options
  const groups = new Map<string, Group>()
  const byName = {
    newHeads: new Set<Group>(),
    logs: new Set<Group>(),
    newPendingTransactions: new Set<Group>(),
    syncing: new Set<Group>(),
  }
  let size = 0
  let notifications = 0

  function* notifyEach({ lead, members }: Group, result: RawJson, order: number): Pieces {
    let frame: Buffer | undefined
    let left = framesPerPiece
    for (const [subscriber, since] of members) {
      if (since >= order) continue
      frame ??= encode(`${lead}${result}}}`)
      notifications++
      subscriber.push(frame)
      if (--left > 0) continue
      yield
      left = framesPerPiece
    }
  }
  const notifyAll = (group: Group, result: RawJson, order: number) => {
    const pieces = notifyEach(group, result, order)
    while (!pieces.next().done);
  }
  const notify = (group: Group, result: RawJson, order: number): Pieces | undefined => {
    if (group.members.size > framesPerPiece) return notifyEach(group, result, order)
    notifyAll(group, result, order)
    return undefined
  }
  function* sendHeader({ header, order }: FeedBlock): Pieces {
    for (const group of byName.newHeads) {
      const rest = notify(group, header, order)
      if (rest) yield* rest
      yield
    }
  }

  let hashes: string[] = []
  let isSendingHashes = false
  // In their order. They have no place in the order of blocks, so every member gets them.
  function* sendHashes(): Pieces {
    for (let some = hashes; some.length > 0; some = hashes) {
      hashes = []
      for (const hash of some)
        for (const group of byName.newPendingTransactions) {
          const rest = notify(group, `"${hash}"`, Number.POSITIVE_INFINITY)
          if (rest) yield* rest
          yield
        }
    }
  }
  // The first one at once. Those that come in the same turn, as from a poll, wait for the next one: it is bounded for all.
  const sendPending = async () => {
    isSendingHashes = true
    for (; hashes.length > 0; await nextTurn()) await inPieces(sendHashes(), now)
    isSendingHashes = false
  }

  const closeAll = (some: Iterable<Group>, reason: string) => {
    const subscribers = new Set<Subscriber>()
    for (const { members } of some)
      for (const subscriber of members.keys()) subscribers.add(subscriber)
    for (const subscriber of subscribers) subscriber.close(1013, reason)
  }

  const needs = (topic: Topic): (() => void) => {
    if (topic.name === 'newHeads') return feed().need('headers')
    if (topic.name === 'logs') return feed().need('logs')
    if (topic.name === 'syncing') return syncing.need()
    // Transactions of dropped blocks are pending again.
    const releases = [pending.need(), feed().need('headers')]
    return () => {
      for (const release of releases) release()
    }
  }

  const open = (topic: Topic, { key, method, organization_id }: Order): Group => {
    const id = newId(ids)
    const group: Group = {
      ...{ key, id, organization_id },
      lead: `{"jsonrpc":"2.0","method":"${method}","params":{"subscription":"${id}","result":`,
      topic,
      query: topic.name === 'logs' ? topic.query : anything,
      members: new Map(),
      release: needs(topic),
      notify: (text, { order }) => notify(group, text, order),
    }
    groups.set(key, group)
    byName[topic.name].add(group)
    if (topic.name === 'logs') index.add(group)
    return group
  }

  const leave = (group: Group, subscriber: Subscriber) => {
    if (!group.members.delete(subscriber)) return
    size--
    if (group.members.size > 0) return
    groups.delete(group.key)
    byName[group.topic.name].delete(group)
    if (group.topic.name === 'logs') index.remove(group)
    group.release()
  }

  const join = (subscriber: Subscriber, topic: Topic, order: Order, since: number) => {
    const group = groups.get(order.key) ?? open(topic, order)
    group.members.set(subscriber, since)
    size++
    return { group, id: group.id, cancel: () => leave(group, subscriber) }
  }

  const replay = (subscriber: Subscriber, { lead }: Group, topic: Topic, path: FeedPath) => {
    const push = (result: RawJson) => {
      notifications++
      subscriber.push(encode(`${lead}${result}}}`))
    }
    const pushLogs = (block: FeedBlock, removed: boolean) => {
      if (topic.name !== 'logs' || !matchesBlock(topic.query, block.number, block.hash)) return
      for (const log of block.logs ?? [])
        if (matchesKeys(topic.query, log)) push(logText(log, removed))
    }
    for (const block of path.removed) pushLogs(block, true)
    for (const block of path.added) {
      if (topic.name === 'newHeads') push(block.header)
      pushLogs(block, false)
    }
  }

  return {
    add(subscriber, topic, order) {
      const subscription = join(subscriber, topic, order, feed().order())
      const current = topic.name === 'syncing' ? syncing.current() : undefined
      if (current !== undefined) {
        notifications++
        subscriber.push(encode(`${subscription.group.lead}${current}}}`))
      }
      return subscription
    },
    whenBegun({ name }, go) {
      if (name === 'syncing') return go(true)
      whenBegun({ feed: feed(), ...(name === 'newPendingTransactions' && { pending }) }, go)
    },
    async resume(subscriber, topic, order, from, begin) {
      // Held while the path is computed: without a listener there would be no feed.
      const release = feed().need(topic.name === 'logs' ? 'logs' : 'headers')
      try {
        return await feed().replay(from, topic.name === 'logs', (path) => {
          // What it saw before it came back may be removed as well.
          const subscription = join(subscriber, topic, order, 0)
          begin(subscription)
          replay(subscriber, subscription.group, topic, path)
        })
      } finally {
        release()
      }
    },
    header: (block) => inPieces(sendHeader(block), now),
    pending(hash) {
      if (byName.newPendingTransactions.size === 0) return
      hashes.push(hash)
      if (hashes.length > maxHashes) {
        hashes = []
        closeAll(
          byName.newPendingTransactions,
          'pending transactions come faster than they are sent',
        )
      }
      if (!isSendingHashes) void sendPending()
    },
    syncing(value) {
      for (const group of byName.syncing) notifyAll(group, value, Number.POSITIVE_INFINITY)
    },
    lost(reason, what) {
      const heads = what === 'chain' ? byName.newHeads : []
      closeAll([...heads, ...byName.logs], reason)
    },
    size: () => size,
    notifications: () => notifications,
  }
}

/** A block and the logs of it that are sent. */
type LogsOfBlock = {
  index: LogIndex<LogListener>
  block: FeedBlock
  logs: readonly FeedLog[]
  removed: boolean
  now?: () => number
}

/** Sends the logs of a block to all matching listeners; undefined when all have them, otherwise a promise of that. */
export function sendLogs(given: LogsOfBlock): Promise<void> | undefined {
  const { index, block, now } = given
  if (index.size() === 0) return undefined
  const entered = index.reach(block)
  const send = () => inPieces(sendEach(given), now)
  return entered === true ? send() : entered.then(send)
}

// Listeners that come or go meanwhile are no matter: new ones do not want a block of before.
function* sendEach({ index, block, logs, removed }: LogsOfBlock): Pieces {
  let left = looksPerPiece
  for (const log of logs) {
    let text = ''
    for (const some of index.find(log))
      for (const listener of some) {
        if (--left < 0) {
          yield
          left = looksPerPiece
        }
        if (!index.wants(listener, log)) continue
        text ||= logText(log, removed)
        const rest = listener.notify(text, block)
        if (rest) yield* rest
        // Up to 16 frames take as long as many looks.
        left -= looksPerPiece / 8
      }
    yield
  }
}

/** Random, as long as all others, and a quantity as geth's are. */
export function newId(ids: Ids): string {
  const bytes = ids.bytes(16)
  bytes[0]! |= 0x10
  return `0x${bytes.toString('hex')}`
}

/** The same text for topics that are the same. That of a long query is its digest: three copies of it are kept. */
export const keyOfTopic = (topic: Topic): string => {
  if (topic.name !== 'logs') return topic.name
  const key = keyOfQuery(topic.query)
  return `logs ${key.length > longestKey ? hash('sha256', key) : key}`
}
