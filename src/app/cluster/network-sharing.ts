// The worker's side of shared probing and block reads. The other processes are help, not a dependency: without an answer in time
// this process asks the nodes itself.

import type { NodeSharing, Sighting } from '../../chains/evm/pool/node-sharing.ts'
import type { Pool, PoolOutcome, PoolRequest } from '../../chains/evm/pool/pool-types.ts'
import type { Channel, Handlers } from './channel.ts'

/** What this process shares of one network with the other processes of the service. */
export type SharedNetwork = NodeSharing & {
  /** The network is used in this process from now on. */
  join(): void
  leave(): void
  /**
   * Requests for blocks that are answered once for all processes: by the process that probes the nodes. Where it does
   * not answer at once, or not usefully, this process asks the nodes itself.
   */
  share(request: Pool['request']): Pool['request']
  stop(): void
}

/** The networks of this process, as the other processes of the service see them. */
export type NetworkSharing = {
  open(path: string): SharedNetwork
  /** For what the supervisor sends. */
  handlers: Handlers
}

/** A block or its logs, asked for by one process in place of another. */
export type BlockRead = Pick<PoolRequest, 'method' | 'params'> & { path: string }

type Listener = Parameters<NodeSharing['listen']>[0]
type Opened = {
  listeners: Set<Listener>
  read(method: string, params: string): Promise<PoolOutcome>
}

// Longer than a node in order takes. After it this process asks the nodes itself, and does so for a while.
const readTimeoutMs = 1_000
const silentMs = 5_000
const nodeTimeoutMs = 5_000
// A block with this hash is the same in a moment; one with this number may be another one soon. The tag `finalized` is
// read every ten seconds, and an older final block is final as well.
const keptMs = { hash: 10_000, number: 500, finalized: 8_000 }
const mostKept = 64
// Longer answers are shared only while they are on their way.
const longestKept = 256 * 1024

/** Makes the side of a process that a supervisor started. */
export function createNetworkSharing({ ask, post }: Pick<Channel, 'ask' | 'post'>): NetworkSharing {
  const networks = new Map<string, Set<Opened>>()
  const users = new Map<string, number>()
  const following = new Set<string>()
  const openedAt = (path: string) => [...(networks.get(path) ?? [])]

  const use = (path: string, by: 1 | -1): void => {
    const before = users.get(path) ?? 0
    const now = before + by
    if (now > 0) users.set(path, now)
    else users.delete(path)
    if (before === 0) post('join', { path })
    if (now > 0) return
    following.delete(path)
    post('leave', { path })
  }

  return {
    open: (path) => {
      const listeners = new Set<Listener>()
      let reads: ReturnType<typeof createReads> | undefined
      let isUsed = false
      let silentUntil = 0
      const opened: Opened = {
        listeners,
        read: async (method, params) => (await reads?.(method, params)) ?? unserved,
      }
      networks.set(path, (networks.get(path) ?? new Set()).add(opened))
      const leave = () => {
        if (isUsed) use(path, -1)
        isUsed = false
      }
      return {
        isFollowing: () => following.has(path),
        publish: (node, sighting) => {
          if (isUsed) post('seen', { path, node, sighting })
        },
        listen: (listener) => {
          listeners.add(listener)
          return () => void listeners.delete(listener)
        },
        join: () => {
          if (!isUsed) use(path, 1)
          isUsed = true
        },
        leave,
        share: (request) => {
          reads ??= createReads(request)
          const own = reads
          return async (asked) => {
            const { method, params } = asked
            // A kept answer would be wrong: tags such as `latest` mean the newest block.
            if (kindOf(params) === undefined) return request(asked)
            if (!following.has(path)) return check(asked, await own(method, params))
            if (performance.now() < silentUntil) return request(asked)
            const read: BlockRead = { path, method, params }
            const reply = await ask<PoolOutcome>('read', read, readTimeoutMs).catch(() => undefined)
            if (!reply) silentUntil = performance.now() + silentMs
            return reply && 'ok' in reply ? check(asked, reply) : request(asked)
          }

          async function check(asked: PoolRequest, reply: PoolOutcome): Promise<PoolOutcome> {
            // Every node has answered that it does not have the block.
            if (!('ok' in reply) || !reply.ok || reply.result === 'null') return reply
            const isBad = asked.isUseless?.(reply, '') || asked.isWrong?.(reply)
            return isBad ? await request(asked) : reply
          }
        },
        stop: () => {
          leave()
          const others = networks.get(path)
          others?.delete(opened)
          if (others?.size === 0) networks.delete(path)
        },
      }
    },
    handlers: {
      lead: ({ path, isLeader }: { path: string; isLeader: boolean }) => {
        if (!isLeader) return void following.add(path)
        if (!following.delete(path)) return
        for (const { listeners } of openedAt(path)) for (const one of listeners) one.lead()
      },
      seen: ({ path, node, sighting }: { path: string; node: string; sighting: Sighting }) => {
        for (const { listeners } of openedAt(path))
          for (const one of listeners) one.seen(node, sighting)
      },
      read: ({ path, method, params }: BlockRead) =>
        openedAt(path).at(-1)?.read(method, params) ?? unserved,
    },
  }
}

const unserved = { failure: 'NO_UPSTREAM' as const }

/** What names the block of a request; undefined for tags whose block changes, such as `latest`, which are not shared. */
function kindOf(params: string): keyof typeof keptMs | undefined {
  if (/"(?:latest|pending|safe|earliest)"/.test(params)) return undefined
  if (/"0x[0-9a-f]{64}"/.test(params)) return 'hash'
  if (params.includes('"0x')) return 'number'
  return params.includes('"finalized"') ? 'finalized' : undefined
}

/** Asks nodes for blocks, each once for all who ask at about the same time. */
function createReads(request: Pool['request']) {
  const kept = new Map<string, { until: number; answer: Promise<PoolOutcome> }>()
  return async (method: string, params: string): Promise<PoolOutcome> => {
    const kind = kindOf(params)
    if (kind === undefined) return unserved
    const key = `${method} ${params}`
    const found = kept.get(key)
    if (found && found.until > performance.now()) return await found.answer
    const answer = request({
      ...{ method, params, idempotent: true, timeoutMs: nodeTimeoutMs },
      isUseless: (reply) => reply.ok && reply.result === 'null',
    })
    kept.delete(key)
    kept.set(key, { until: performance.now() + keptMs[kind], answer })
    if (kept.size > mostKept) kept.delete(kept.keys().next().value as string)
    const outcome = await answer
    // A chain without a tag has none in a moment either.
    const isKept =
      'ok' in outcome &&
      (outcome.ok
        ? outcome.result !== 'null' && outcome.result.length <= longestKept
        : kind === 'finalized')
    if (!isKept && kept.get(key)?.answer === answer) kept.delete(key)
    return outcome
  }
}
