import type { PolkadotChain } from './chain.ts'
import { type Follow, type FollowLimits, startFollow } from './follow.ts'
import { booleanParam, bytesParam, textParam } from './params.ts'
import { type Notify, RpcError, type Session } from './rpc.ts'
import { storageItems } from './storage-query.ts'

/** What is common to all followers of one connection. */
export type ChainHeadOptions = {
  chain: PolkadotChain
  limits: FollowLimits
  notify: Notify
  isBehind(): boolean
}

/** The group chainHead_v1 for one connection; with what stops all that follow. */
export type ChainHead = Session & { stopAll(): void }

// As many as every node must allow.
const mostFollows = 2

/** Serves the head of the chain to one connection. */
export function createChainHead(options: ChainHeadOptions): ChainHead {
  const { chain, limits, notify, isBehind } = options
  const follows = new Map<string, Follow>()
  let count = 0

  /** Followers that are over, or never were, get `stale`: their client may not know it yet. */
  const withFollow = <result>(id: unknown, stale: result, work: (follow: Follow) => result) => {
    const follow = follows.get(textParam(id, 'followSubscription'))
    return follow ? work(follow) : stale
  }
  const limitReached: unknown = { result: 'limitReached' }

  return {
    methods: {
      chainHead_v1_follow: (withRuntime: unknown) => {
        const hasRuntime = booleanParam(withRuntime, 'withRuntime')
        if (follows.size >= mostFollows)
          throw new RpcError(-32_800, 'Too many follow subscriptions are open')
        const id = `follow-${++count}`
        let isOver = false
        const follow = startFollow(chain, {
          ...limits,
          withRuntime: hasRuntime,
          isBehind,
          push: (event) => notify('chainHead_v1_followEvent', id, event),
          onStop: () => {
            isOver = true
            follows.delete(id)
          },
        })
        if (!isOver) follows.set(id, follow)
        return id
      },
      chainHead_v1_unfollow: (id: unknown) => withFollow(id, undefined, (follow) => follow.end()),
      chainHead_v1_header: (id: unknown, hash: unknown) =>
        withFollow(id, null, (follow) => follow.header(textParam(hash, 'hash'))),
      chainHead_v1_body: (id: unknown, hash: unknown) =>
        withFollow(id, limitReached, (follow) => follow.body(textParam(hash, 'hash'))),
      chainHead_v1_call: (id: unknown, hash: unknown, entry: unknown, input: unknown) =>
        withFollow(id, limitReached, (follow) =>
          follow.call(
            textParam(hash, 'hash'),
            textParam(entry, 'function'),
            bytesParam(input, 'callParameters'),
          ),
        ),
      chainHead_v1_storage: (id: unknown, hash: unknown, items: unknown, childTrie: unknown) =>
        withFollow(id, limitReached, (follow) =>
          follow.storage(textParam(hash, 'hash'), storageItems(items, childTrie)),
        ),
      chainHead_v1_continue: (id: unknown, operation: unknown) =>
        withFollow(id, undefined, (follow) => follow.resume(textParam(operation, 'operationId'))),
      chainHead_v1_stopOperation: (id: unknown, operation: unknown) =>
        withFollow(id, undefined, (follow) =>
          follow.stopOperation(textParam(operation, 'operationId')),
        ),
      chainHead_v1_unpin: (id: unknown, hashes: unknown) =>
        withFollow(id, undefined, (follow) => {
          const list = Array.isArray(hashes) ? hashes : [hashes]
          follow.unpin(list.map((hash) => textParam(hash, 'hashOrHashes')))
        }),
    },
    stopAll: () => {
      for (const follow of [...follows.values()]) follow.stop()
    },
    close: () => {
      for (const follow of [...follows.values()]) follow.end()
    },
  }
}
