import { lackOf } from '../../chains/evm/pool/node-error.ts'
import type {
  Pool,
  PoolOutcome,
  PoolRequest,
  RawJson,
  RpcReply,
} from '../../chains/evm/pool/pool-types.ts'
import type { Principal } from '../../domain/context.ts'
import type { AnswerCache } from '../cache/cache.ts'
import type { ChainView } from '../cache/chain-view.ts'
import { createFlights } from '../cache/flights.ts'
import { createProgress } from '../cache/progress.ts'
import type { Session } from '../streams/session.ts'
import type { Dispatch } from './answer.ts'
import { type Answer, answered, failed, type OnAnswer, refused } from './answer.ts'
import type { LogFilter } from './check-filter.ts'
import { toNumber, toQuantity } from './encodings.ts'
import type { RpcCall } from './envelope.ts'
import { createLogs } from './logs.ts'
import type { Method } from './methods.ts'
import { type Refusal, refuse } from './rpc-error.ts'
import { createSender } from './send.ts'
import { type BlockTarget, hashTarget, liveTarget, numberTarget, pinParams } from './target.ts'
import { isOtherTransaction, isWrongBlock } from './wrong-block.ts'

/** What calls are answered with. */
export type DispatchOptions = {
  pool: Pool
  view: ChainView
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
  const progress = createProgress(options)
  const fetchLogs = createLogs({ ...options, flights, progress })
  const send = createSender({ ...options, progress })
  const callFilter: Dispatch = options.filters ?? ((_1, _2, _3, done) => done(refused(noFilters)))
  let numberOfHead = -1
  let textOfHead = ''

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
      if (target.pinned && mayUnpin(method, call, outcome)) return askLess()
      if ('failure' in outcome) {
        // A node that is behind may answer a key that has not seen more than it has.
        const isLess = target.minBlock > progress.leastOf(session)
        if (outcome.failure === 'NO_UPSTREAM' && isLess) return askLess()
        return done(failed(outcome.failure))
      }
      if (!outcome.ok) return done(answerFrom(false, outcome.error, target))
      progress.see(session, blockSeen(method, target, outcome.result))
      done(answerFrom(true, outcome.result, target))
    }
    const askLess = () => {
      progress.lostHead()
      ask(method, call, session, liveTarget(method, call, progress.leastOf(session)), done)
    }
    // What may change with the next block is shared only among keys that have seen as much: no client
    // gets an empty answer that is older than what it has seen.
    const isFixed = target.keep === 'block' || target.keep === 'static'
    const flight = isFixed ? target.key : `${session.highest}>${target.key}`
    if (flights.join(flight, finish)) return
    const land = flights.open(flight, finish)
    const begun = view.generation()
    pool.send(requestOf(method, call, target), (outcome) => {
      if ('failure' in outcome) return land(outcome)
      const reply = fixed(method, call, target, outcome)
      if (cache && reply.ok && begun === view.generation())
        keep(cache, method, target, reply.result)
      land(reply)
    })
  }

  const requestOf = (method: Method, call: RpcCall, target: BlockTarget): PoolRequest => {
    const { plan } = method
    const pin = target.pinned && plan.kind === 'number'
    const request: PoolRequest = {
      method: method.name,
      params: pin ? pinParams(target.params, plan.index, target.number) : target.params,
      idempotent: true,
      timeoutMs,
    }
    // Of what may not be there yet, a null is as good an answer as any.
    if (method.isUseless && target.keep !== 'never') request.isUseless = method.isUseless
    // A pending block has no hash yet.
    if (method.isBlock && call.args[0] !== 'pending')
      request.isWrong = (reply) => isWrongBlock(reply, askedBlock(plan, target))
    if (plan.kind === 'transaction')
      request.isWrong = (reply) => isOtherTransaction(reply, String(call.args[0]).toLowerCase())
    if (target.minBlock >= 0) request.minBlock = target.minBlock
    if (method.needs && pool.can(method.needs)) request.needs = method.needs
    const head = target.number >= 0 ? pool.head() : undefined
    if (head && head.number - target.number > archiveDepth && pool.can('archive'))
      request.needs = 'archive'
    return request
  }

  const keep = (store: AnswerCache, method: Method, target: BlockTarget, result: RawJson) => {
    if (target.keep === 'never' || result === 'null') return
    if (target.keep === 'static')
      return store.keep(target.key, { result, number: -1, hash: '' }, view)
    const { number, hash } = target.keep === 'answer' ? blockOf(result) : target
    if (number < 0) return
    const settled = number <= view.final()
    if (!settled && (hash === '' || view.hashAt(number) !== hash)) return
    if (hash !== '' && !proves(method, result, hash)) return
    store.keep(target.key, { result, number, hash }, view)
  }

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
    if (head.number !== numberOfHead) {
      numberOfHead = head.number
      textOfHead = `"${toQuantity(head.number)}"`
    }
    progress.see(session, head.number)
    const { number, hash } = head
    done({ ok: true, text: textOfHead, refusal: undefined, hit: true, number, hash })
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

const answerFrom = (ok: boolean, text: RawJson, target: BlockTarget): Answer => {
  const answer = answered(text)
  answer.ok = ok
  if (target.keep === 'never') return answer
  answer.hit = false
  if (ok && target.hash !== '') {
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
  if (plan.kind === 'blockNumber') return toNumber(result.slice(1, -1))
  if (target.keep === 'answer') return blockOf(result).number
  if (target.keep !== 'never') return target.pinned ? target.number : -1
  return Math.max(target.minBlock, 'proof' in plan ? blockOf(result).number : -1)
}

const blockNumber = /"(?:blockNumber|number)": ?"(0x[0-9a-f]{1,13})"/
const blockHash = /"blockHash": ?"(0x[0-9a-f]{64})"/

/** The block that an answer names as its own. */
function blockOf(result: RawJson): { number: number; hash: string } {
  const number = blockNumber.exec(result)?.[1]
  if (number === undefined) return { number: -1, hash: '' }
  return { number: toNumber(number), hash: blockHash.exec(result)?.[1] ?? '' }
}

/** Whether the answer is about the block with this hash, where answers of the method contain it. */
function proves({ plan }: Method, result: RawJson, hash: string): boolean {
  const field = plan.kind === 'number' || plan.kind === 'hash' ? plan.proof : undefined
  if (field === undefined || result === '[]') return true
  return result.includes(`"${field}":"${hash}"`) || result.includes(`"${field}": "${hash}"`)
}
