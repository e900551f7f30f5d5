// One network of the node gateway: JSON-RPC calls, the cache of answers, filters and subscriptions over one
// pool of nodes. It uses `chains/evm` and `domain`. Answers of one moment belong to one branch, and an error
// of a node is never cached.

import type { Canonical } from '../chains/evm/canonical/canonical.ts'
import type { Pool } from '../chains/evm/pool/pool-types.ts'
import type { Reason } from '../contract/errors/errors.ts'
import { sendingDenial } from '../domain/access/authorize.ts'
import type { Principal } from '../domain/access/principal.ts'
import { type AnswerCache, createAnswerCache } from './cache/cache.ts'
import type { Rest } from './rest.ts'
import type { Dispatch } from './rpc/answer.ts'
import { type Answer, type OnAnswer, refused } from './rpc/answer.ts'
import type { LogFilter } from './rpc/check-filter.ts'
import { createDispatch } from './rpc/dispatch.ts'
import type { RpcCall } from './rpc/envelope.ts'
import { createMethods, type Method } from './rpc/methods.ts'
import { refusalOf, refuse } from './rpc/rpc-error.ts'
import { latencyOf, type Session } from './streams/session.ts'
import { createSessions } from './streams/sessions.ts'
import { type Counters, createCounters, type Outcome } from './usage/counters.ts'
import type { UsageDelta } from './usage/usage.ts'

/** One network of the gateway. */
export type Network = {
  chain: string
  network: string
  pool: Pool
  sessionOf(principal: Principal): Session
  /** Checks and answers one call. */
  call(call: RpcCall, session: Session, done: OnAnswer, connection?: Dispatch): void
  /** Answers a checked call of the service's own operations, which are limited and counted as such. */
  read(method: string, args: readonly unknown[], session: Session): Promise<Answer>
  view: Canonical
  /** Absent when nothing shall be kept. */
  cache: AnswerCache | undefined
  /** Counts a call that was refused before it was looked at. */
  countRefused(
    call: RpcCall,
    session: Session,
    answer: Answer,
    /** Whether the limits have not counted it either, because they refused it. */
    isOverLimit: boolean,
  ): void
  counters: Counters
  /** The name of a method as the metrics show it: with the prefix of the chain, or `other`. */
  methodName(name: string): string
  cacheBytes(): number
  takeUsage(): UsageDelta[]
  /** Whether its nodes are connected; otherwise the next call connects them. */
  isAwake(): boolean
  /** Keeps its nodes connected until the returned function is called. */
  hold(): () => void
  stop(): void
}

/** How to build a network. */
export type NetworkOptions = {
  chain: string
  network: string
  prefix: string
  pool: Pool
  /** Belongs to the caller, who stops it. */
  canonical: Canonical
  allowedMethods: readonly string[]
  /** 0 keeps nothing. */
  cacheBytes: number
  maxLogRange: number
  timeoutMs: number
  now(): number
  filters?: Dispatch
  /** What a filter of this key was made with; undefined when it is none of logs, or gone. */
  filterOf?(id: unknown, session: Session): LogFilter | undefined
  /** How to call a filter that another process holds; undefined for one of this process. */
  filterElsewhere?(id: unknown): RemoteFilter | undefined
  /** Called with the hash of every transaction that a node accepted. */
  onSent?(hash: string): void
  /** The usage of a session that leaves memory. */
  spill(deltas: UsageDelta[]): void
  /** Connects the nodes of a network that was not used. Without it they are connected all the time. */
  rest?: Rest
}

/** Calls a filter in another process. */
export type RemoteFilter = (
  method: string,
  args: readonly unknown[],
  principal: Principal,
) => Promise<Answer>

const outcomeOfReason: Partial<Record<Reason, Outcome>> = {
  INVALID_PARAMS: 'invalid',
  INVALID_RPC_REQUEST: 'invalid',
  LOG_RANGE_TOO_LARGE: 'invalid',
  RPC_METHOD_NOT_FOUND: 'unknown_method',
  RATE_LIMITED: 'rate_limited',
  RATE_LIMIT_BLOCKED: 'rate_limited',
  UPSTREAM_UNAVAILABLE: 'unavailable',
  UPSTREAM_TIMEOUT: 'timeout',
}

/** Makes a network on its pool. */
export function createNetwork(options: NetworkOptions): Network {
  const { chain, network, prefix, pool, spill, rest } = options
  const methods = createMethods({ prefix, allowed: options.allowedMethods })
  const counters = createCounters(methods.list)
  const cache =
    options.cacheBytes > 0 ? createAnswerCache({ maxBytes: options.cacheBytes }) : undefined
  const view = options.canonical
  const unsubscribe = view.onChange(({ droppedAbove }) => {
    if (droppedAbove !== undefined) cache?.drop(droppedAbove)
  })
  const mayNotSend = (principal: Principal) => {
    const denial = sendingDenial(principal, { chain, network })
    return denial && refusalOf(denial)
  }
  const dispatch = withRemoteFilters(
    createDispatch({ ...options, view, cache, mayNotSend }),
    options.filterElsewhere,
  )
  const sessions = createSessions({ chain, network, counters, spill })

  const count = (
    method: Method | undefined,
    session: Session,
    answer: Answer,
    begun: number,
    isOverLimit = false,
  ) => {
    const index = method ? method.index : session.calls.length - 1
    session.counted = true
    session.calls[index]! += 1
    if (!answer.ok) {
      session.errors[index]! += 1
      if (isOverLimit) session.refused[index]! += 1
    }
    if (answer.hit !== undefined) counters.countCache(answer.hit)
    const microseconds = begun === 0 ? 0 : (performance.now() - begun) * 1000
    const bucket = counters.count(method, outcomeOf(answer), microseconds)
    // A refused call has no latency.
    if (begun !== 0) latencyOf(session, index)[bucket]! += 1
  }

  return {
    chain,
    network,
    pool,
    counters,
    sessionOf: sessions.of,
    call(call, session, done, connection) {
      const method = methods.find(call.method)
      // What can only be asked over a WebSocket is refused as such, whatever its parameters are.
      const isElsewhere = method?.plan.kind === 'subscription' && !connection
      const check = isElsewhere ? undefined : method?.check
      const refusal =
        call.refusal ?? (method ? check?.(call.args, call.params) : unknownMethod(call.method))
      if (refusal || !method) {
        const answer = refused(refusal ?? unknownMethod(call.method))
        count(method, session, answer, 0)
        return done(answer)
      }
      const begun = performance.now()
      const waking = rest?.use()
      const finish: OnAnswer = (answer) => {
        count(method, session, answer, begun)
        done(answer)
      }
      if (waking) void waking.then(() => dispatch(method, call, session, finish, connection))
      else dispatch(method, call, session, finish, connection)
    },
    view,
    cache,
    read: (name, args, session) =>
      new Promise((resolve) => {
        const method = methods.find(name)
        if (!method) return resolve(refused(unknownMethod(name)))
        const params = JSON.stringify(args)
        const call = { id: undefined, method: name, params, args, refusal: undefined }
        dispatch(method, call, session, resolve)
      }),
    countRefused(call, session, answer, isOverLimit) {
      count(methods.find(call.method), session, answer, 0, isOverLimit)
    },
    methodName: (name) => methods.find(name)?.name ?? 'other',
    cacheBytes: () => cache?.bytes() ?? 0,
    takeUsage: sessions.takeUsage,
    isAwake: () => rest?.isAwake() ?? true,
    hold: () => rest?.hold() ?? (() => {}),
    stop: () => {
      rest?.stop()
      unsubscribe()
    },
  }
}

/** Passes calls of filters that other processes hold on to them. */
function withRemoteFilters(dispatch: Dispatch, find: NetworkOptions['filterElsewhere']): Dispatch {
  if (!find) return dispatch
  return (method, call, session, done, connection) => {
    const { kind } = method.plan
    const remote = kind === 'filter' || kind === 'filterLogs' ? find(call.args[0]) : undefined
    if (remote) void remote(method.name, call.args, session.principal).then(done)
    else dispatch(method, call, session, done, connection)
  }
}

function outcomeOf({ ok, refusal }: Answer): Outcome {
  if (ok) return 'ok'
  if (!refusal) return 'node_error'
  return outcomeOfReason[refusal.reason] ?? 'failed'
}

function unknownMethod(name: string) {
  const short = name.length > 100 ? `${name.slice(0, 100)}...` : name
  // The name is one character per byte.
  const text = JSON.stringify(Buffer.from(short, 'latin1').toString('utf8'))
  return refuse('RPC_METHOD_NOT_FOUND', `The method ${text} does not exist or is not offered.`)
}
