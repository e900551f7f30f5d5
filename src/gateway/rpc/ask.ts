// Asks the nodes for the answer of a call, together with equal calls under way. The answer must belong to the branch of the
// moment at which it is given. So the generation of the canonical chain is read before the nodes are asked. Each answer is
// checked against the branch and asked for again if it is off it; it is kept only if the generation is still the same.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import { lackOf } from '../../chains/evm/pool/node-error.ts'
import type {
  Pool,
  PoolOutcome,
  PoolRequest,
  RawJson,
  RpcReply,
} from '../../chains/evm/pool/pool-types.ts'
import type { AnswerCache } from '../cache/cache.ts'
import type { Flights } from '../cache/flights.ts'
import type { Progress } from '../cache/progress.ts'
import type { Session } from '../streams/session.ts'
import { type Answer, answered, failed, type OnAnswer } from './answer.ts'
import { type BranchCheck, blockOf, reachBranch } from './branch-check.ts'
import { isQuantity, toNumber } from './encodings.ts'
import type { RpcCall } from './envelope.ts'
import type { Method } from './methods.ts'
import { type BlockTarget, liveTarget, pinParams } from './target.ts'
import { type createBlockReader, isOtherTransaction, isWrongBlock } from './wrong-block.ts'

/** Asks for the answer of a call about a block; the cache was asked before. */
export type AskNodes = (
  method: Method,
  call: RpcCall,
  session: Session,
  target: BlockTarget,
  done: OnAnswer,
) => void

/** Depth from which only some nodes have the state of a block. */
// Full nodes keep the state of 128 blocks by default.
const archiveDepth = 128

/** Makes the way to the nodes. */
export function createAskNodes(options: {
  pool: Pool
  view: Canonical
  cache: AnswerCache | undefined
  timeoutMs: number
  flights: Flights
  progress: Progress
  branch: BranchCheck
  readBlock: ReturnType<typeof createBlockReader>
  /** The number of the head as JSON. */
  textOf(number: number): RawJson
}): AskNodes {
  const { pool, view, cache, timeoutMs, flights, progress, branch, readBlock, textOf } = options
  const isBlockText = (result: RawJson): boolean => readBlock(result) !== undefined
  // With one node there is no other that could contradict it or answer better.
  const isAlone = pool.status().length === 1

  /** Whether `latest` may be asked for where the block that it stood for is not to be had. */
  const mayUnpin = (method: Method, call: RpcCall, outcome: PoolOutcome): boolean => {
    if ('failure' in outcome) return outcome.failure === 'NO_UPSTREAM'
    if (!outcome.ok) return lackOf(outcome.error, call.params) !== undefined
    return outcome.result === 'null' && method.isNullNoBlock
  }

  const ask: AskNodes = (method, call, session, target, done) => {
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

  return ask
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
