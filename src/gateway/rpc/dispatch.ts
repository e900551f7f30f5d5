// How a call is answered, by the plan of its method: from the cache, together with an equal call under way, or by a node.
// The answer must belong to the branch of the moment at which it is given. So the generation of the canonical chain is read
// before the nodes are asked. Each answer is checked against the branch and asked for again if it is off it; it is kept
// only if the generation is still the same.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import { lackOf } from '../../chains/evm/pool/node-error.ts'
import type {
  Pool,
  PoolOutcome,
  PoolRequest,
  RawJson,
  RpcReply,
} from '../../chains/evm/pool/pool-types.ts'
import type { Principal } from '../../domain/access/principal.ts'
import type { AnswerCache } from '../cache/cache.ts'
import { createFlights } from '../cache/flights.ts'
import { createProgress } from '../cache/progress.ts'
import type { Session } from '../streams/session.ts'
import type { Dispatch } from './answer.ts'
import { type Answer, answered, failed, type OnAnswer, refused } from './answer.ts'
import { blockOf, createBranchCheck, reachBranch } from './branch-check.ts'
import type { LogFilter } from './check-filter.ts'
import { isQuantity, toNumber, toQuantity } from './encodings.ts'
import type { RpcCall } from './envelope.ts'
import { createLogs } from './logs.ts'
import type { Method } from './methods.ts'
import { type Refusal, refuse } from './rpc-error.ts'
import { createSender } from './send.ts'
import { type BlockTarget, hashTarget, liveTarget, numberTarget, pinParams } from './target.ts'
import { createBlockReader, isOtherTransaction, isWrongBlock } from './wrong-block.ts'

/** What calls are answered with. */
export type DispatchOptions = {
  pool: Pool
  view: Canonical
  /** Absent when nothing shall be kept. */
  cache: AnswerCache | undefined
  timeoutMs: number
  maxLogRange: number
  now(): number
  /** Answers the calls of filters, which live in the gateway and not in a node. */
  filters?: Dispatch
  /** What a filter of this key was made with; undefined when it is none of logs, or gone. */
  filterOf?(id: unknown, session: Session): LogFilter | undefined
  /** Called with the hash of every transaction that a node accepted. */
  onSent?(hash: string): void
  /** Why a key may not send transactions; undefined where it may. */
  mayNotSend?(principal: Principal): Refusal | undefined
}

/** Depth from which only some nodes have the state of a block. */
// Full nodes keep the state of 128 blocks by default.
const archiveDepth = 128

const overHttp = refuse(
  'RPC_METHOD_NOT_FOUND',
  'Subscriptions need a WebSocket: connect to /<chain>/<network>/v1/ws/<api_key>.',
)
const noFilter = refuse('FILTER_NOT_FOUND', 'filter not found')
const noFilters = refuse('RPC_METHOD_NOT_FOUND', 'Filters are not served here.')

/** Makes the way from a call to its answer: cache, calls on their way, nodes. */
export function createDispatch(options: DispatchOptions): Dispatch {
  const { pool, view, cache, timeoutMs } = options
  const flights = createFlights()
  const readBlock = createBlockReader()
  const isBlockText = (result: RawJson): boolean => readBlock(result) !== undefined
  const branch = createBranchCheck(view, readBlock)
  const progress = createProgress(options)
  const fetchLogs = createLogs({ ...options, flights, progress, branch })
  const send = createSender({ ...options, progress })
  const callFilter: Dispatch = options.filters ?? ((_1, _2, _3, done) => done(refused(noFilters)))
  // With one node there is no other that could contradict it or answer better.
  const isAlone = pool.status().length === 1
  // The text of the head is made once per block, not once per call.
  let numberOfHead = -1
  let textOfHead = ''
  const textOf = (number: number): RawJson => {
    if (number !== numberOfHead) {
      numberOfHead = number
      textOfHead = `"${toQuantity(number)}"`
    }
    return textOfHead
  }

  /** Whether `latest` may be asked for where the block that it stood for is not to be had. */
  const mayUnpin = (method: Method, call: RpcCall, outcome: PoolOutcome): boolean => {
    if ('failure' in outcome) return outcome.failure === 'NO_UPSTREAM'
    if (!outcome.ok) return lackOf(outcome.error, call.params) !== undefined
    return outcome.result === 'null' && method.isNullNoBlock
  }

  const ask = (
    method: Method,
    call: RpcCall,
    session: Session,
    target: BlockTarget,
    done: OnAnswer,
  ) => {
    const finish = (outcome: PoolOutcome) => {
      // `latest` was pinned to a block that its nodes have lost: the other nodes may be behind, but they
      // answer.
      if (target.pinned && mayUnpin(method, call, outcome)) return askLess()
      if ('failure' in outcome) {
        // A node that is behind may answer a key that has not seen more than it has.
        const isLess = target.minBlock > progress.leastOf(session)
        // No node is as far as this key has seen. One that is behind is asked before the call fails.
        if (outcome.failure === 'NO_UPSTREAM' && isLess) return askLess()
        return done(failed(outcome.failure))
      }
      if (!outcome.ok) return done(answerFrom(false, outcome.error, target, view))
      progress.see(session, blockSeen(method, target, outcome.result))
      done(answerFrom(true, outcome.result, target, view))
    }
    const askLess = () => {
      progress.lostHead()
      ask(method, call, session, liveTarget(method, call, progress.leastOf(session)), done)
    }
    // Equal calls share one request to the nodes. What may change with the next block is shared only among keys that have
    // seen as much: no client gets an empty answer that is older than what it has seen.
    const isFixed = target.keep === 'block' || target.keep === 'static'
    const flight = isFixed ? target.key : `${session.highest}>${target.key}`
    if (flights.join(flight, finish)) return
    const land = flights.open(flight, finish)
    fetchOnce(method, call, target, (outcome, begun) => {
      const isResult = 'ok' in outcome && outcome.ok
      if (!isResult || branch.answer(method, target, outcome.result, begun) === 'on')
        return conclude(method, target, outcome, begun, land)
      // Asks again until the answer and the branch agree, at most `maxRetries` times; then the call fails.
      reachBranch({
        view,
        first: { outcome, begun },
        fetch: () =>
          new Promise((resolve) =>
            fetchOnce(method, call, target, (outcome, begun) => resolve({ outcome, begun })),
          ),
        standingOf: (result, begun) => branch.answer(method, target, result, begun),
        // The block has left the chain, and no other is at its height.
        ifOff: (result) =>
          method.plan.kind === 'hash' || isAboveTip(target, result) ? nothing : undefined,
      }).then(
        ({ outcome, begun }) => conclude(method, target, outcome, begun, land),
        () => land({ failure: 'ABORTED' }),
      )
    })
  }

  const isAboveTip = ({ keep, number }: BlockTarget, result: RawJson): boolean =>
    (keep === 'block' ? number : blockOf(result).number) > (view.head()?.number ?? 0)

  /** Asks the nodes; `begun` is the generation of the chain at that time. */
  const fetchOnce = (
    method: Method,
    call: RpcCall,
    target: BlockTarget,
    done: (outcome: PoolOutcome, begun: number) => void,
  ) => {
    const begun = view.generation()
    pool.send(requestOf(method, call, target), (outcome) =>
      done('failure' in outcome ? outcome : fixed(method, call, target, outcome), begun),
    )
  }

  const conclude = (
    method: Method,
    target: BlockTarget,
    outcome: PoolOutcome,
    begun: number,
    land: (outcome: PoolOutcome) => void,
  ) => {
    // Errors are never kept, nor what may be of a branch that was left meanwhile (`cache-errors.test.ts`).
    if (cache && 'ok' in outcome && outcome.ok && begun === view.generation())
      keep(cache, method, target, outcome.result)
    land(outcome)
  }

  /** Whether another node should be asked. */
  const uselessOf = (method: Method, target: BlockTarget): PoolRequest['isUseless'] => {
    // Of what may not be there yet, a null is as good an answer as any.
    const isUseless = target.keep === 'never' ? undefined : method.isUseless
    // A block that is asked for by its hash is the same on every node.
    if (isAlone || method.plan.kind === 'hash') return isUseless
    const begun = view.generation()
    return (reply) =>
      isUseless?.(reply) === true ||
      (reply.ok && branch.answer(method, target, reply.result, begun) === 'off')
  }

  const requestOf = (method: Method, call: RpcCall, target: BlockTarget): PoolRequest => {
    const { plan } = method
    const pin = target.pinned && plan.kind === 'number'
    // A pending block has no hash yet.
    const isBlock = method.isBlock && call.args[0] !== 'pending'
    // Always the same members in the same order, so that what reads it is compiled for one shape.
    return {
      method: method.name,
      params: pin ? pinParams(call, plan.index, textOf(target.number)) : target.params,
      minBlock: target.minBlock >= 0 ? target.minBlock : undefined,
      needs: needsOf(method, target),
      idempotent: true,
      timeoutMs,
      isUseless: uselessOf(method, target),
      isWhole: isBlock ? isBlockText : undefined,
      isWrong: isBlock
        ? (reply) => isWrongBlock(reply, askedBlock(plan, target), readBlock)
        : plan.kind === 'transaction'
          ? (reply) => isOtherTransaction(reply, String(call.args[0]).toLowerCase())
          : undefined,
    }
  }

  const needsOf = (method: Method, target: BlockTarget): PoolRequest['needs'] => {
    const head = target.number >= 0 ? view.head() : undefined
    if (head && head.number - target.number > archiveDepth && pool.can('archive')) return 'archive'
    return method.needs && pool.can(method.needs) ? method.needs : undefined
  }

  const keep = (store: AnswerCache, method: Method, target: BlockTarget, result: RawJson) => {
    // What does not exist yet may exist with the next block.
    if (target.keep === 'never' || result === 'null') return
    if (target.keep === 'static')
      return store.keep(target.key, { result, number: -1, hash: '' }, view)
    const { number, hash } = target.keep === 'answer' ? blockOf(result) : target
    if (number < 0) return
    // A final block cannot be replaced. Above it an answer is kept under the hash that is canonical now, so that the cache
    // can separate it from one of another branch.
    const settled = number <= view.final()
    if (!settled && (hash === '' || view.hashAt(number) !== hash)) return
    // A node may have answered from another branch at the same height.
    if (hash !== '' && !branch.proves(method, result, hash)) return
    store.keep(target.key, { result, number, hash }, view)
  }

  /** A hit raises what the key has seen, as an answer of a node does: later calls must not show an older block. */
  const fromCache = (target: BlockTarget, session: Session, done: OnAnswer): boolean => {
    const entry = target.keep === 'never' ? undefined : cache?.find(target.key, view)
    if (!entry) return false
    if (target.pinned || target.keep === 'answer') progress.see(session, entry.number)
    const { result: text, number, hash } = entry
    done({ ok: true, text, refusal: undefined, hit: true, number, hash })
    return true
  }

  const answer = (
    method: Method,
    call: RpcCall,
    session: Session,
    target: BlockTarget,
    done: OnAnswer,
  ) => {
    if (!fromCache(target, session, done)) ask(method, call, session, target, done)
  }

  const answerBlockNumber: Dispatch = (method, call, session, done) => {
    const head = cache && progress.usableHead(session)
    if (!head)
      return ask(method, call, session, liveTarget(method, call, progress.lowest(session)), done)
    progress.see(session, head.number)
    const { number, hash } = head
    done({ ok: true, text: textOf(number), refusal: undefined, hit: true, number, hash })
  }

  return (method, call, session, done, connection) => {
    const { plan } = method
    const live = () => liveTarget(method, call, progress.lowest(session))
    switch (plan.kind) {
      case 'number': {
        const head = cache && progress.usableHead(session)
        const { index, impliesLatest = false } = plan
        const lowest = head ? head.number : progress.lowest(session)
        const target = numberTarget({ method, call, index, impliesLatest, head, view, lowest })
        return answer(method, call, session, target, done)
      }
      case 'hash': {
        const hash = String(call.args[0])
        // Known to be orphaned: nodes still have it, but no answer of the service contains it
        // (docs/architecture.md).
        if (view.isGone(hash.toLowerCase())) return done(answered('null'))
        const target = hashTarget(method, call, hash, view, progress.lowest(session))
        return answer(method, call, session, target, done)
      }
      case 'transaction':
        return answer(
          method,
          call,
          session,
          { ...live(), key: method.name + call.params, keep: 'answer' },
          done,
        )
      // Chain id and network version: they never change, so that any node and any age will do.
      case 'static':
        return answer(
          method,
          call,
          session,
          { ...live(), key: method.name, minBlock: -1, keep: 'static' },
          done,
        )
      case 'head': {
        const head = cache && progress.usableHead(session)
        if (!head) return ask(method, call, session, live(), done)
        const { number, hash } = head
        const key = `${method.name}@${number}`
        return answer(method, call, session, { ...live(), key, number, hash, keep: 'block' }, done)
      }
      case 'blockNumber':
        return answerBlockNumber(method, call, session, done)
      case 'logs':
        return fetchLogs(method, call, session, done)
      case 'send':
        return send(method, call, session, done)
      // An extension: `getLogs` with what the filter was made with.
      case 'filterLogs': {
        const filter = options.filterOf?.(call.args[0], session)
        if (!filter) return done(refused(noFilter))
        const name = method.name.replace(/getFilterLogs$/, 'getLogs')
        const args = [filter]
        const params = JSON.stringify(args)
        return fetchLogs({ ...method, name }, { ...call, args, params }, session, done)
      }
      case 'filter':
        return callFilter(method, call, session, done)
      case 'subscription':
        if (connection) return connection(method, call, session, done)
        return done(refused(overHttp))
      default:
        return ask(method, call, session, live(), done)
    }
  }
}

/** An error about a block that is in the chain stays one: null would say that there is no such block. */
const fixed = (method: Method, call: RpcCall, { keep }: BlockTarget, reply: RpcReply): RpcReply => {
  const isThere = keep === 'block' && method.isNullNoBlock
  if (!method.fix || (isThere && !reply.ok && lackOf(reply.error) === 'block')) return reply
  return method.fix(reply, call.args)
}

const nothing = { ok: true, result: 'null' } as const

const answerFrom = (ok: boolean, text: RawJson, target: BlockTarget, view: Canonical): Answer => {
  const answer = answered(text)
  answer.ok = ok
  if (target.keep === 'never') return answer
  answer.hit = false
  // Not where the block was replaced while the nodes were asked.
  if (ok && target.hash !== '' && (view.bestHashAt(target.number) ?? target.hash) === target.hash) {
    answer.number = target.number
    answer.hash = target.hash
  }
  return answer
}

/** The number is what was asked for, the hash only where that was. */
const askedBlock = ({ kind }: Method['plan'], { number, hash }: BlockTarget) =>
  kind === 'hash' ? { number: -1, hash } : { number, hash: '' }

/** The highest block that an answer shows. */
function blockSeen({ plan }: Method, target: BlockTarget, result: RawJson): number {
  if (plan.kind === 'blockNumber') {
    const text = result.slice(1, -1)
    return isQuantity(text) ? toNumber(text) : -1
  }
  if (target.keep === 'answer') return blockOf(result).number
  if (target.keep !== 'never') return target.pinned ? target.number : -1
  return Math.max(target.minBlock, 'proof' in plan ? blockOf(result).number : -1)
}
