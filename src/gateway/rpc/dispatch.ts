// How a call is answered, by the plan of its method: from the cache, together with an equal call under way, or by a node
// (`ask.ts`). An answer belongs to the branch of the moment at which it is given.

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Pool, RawJson } from '../../chains/evm/pool/pool-types.ts'
import type { Principal } from '../../domain/access/principal.ts'
import type { AnswerCache } from '../cache/cache.ts'
import { createFlights } from '../cache/flights.ts'
import { createProgress } from '../cache/progress.ts'
import type { Session } from '../streams/session.ts'
import type { Dispatch } from './answer.ts'
import { answered, type OnAnswer, refused } from './answer.ts'
import { createAskNodes } from './ask.ts'
import { createBranchCheck } from './branch-check.ts'
import type { LogFilter } from './check-filter.ts'
import { toQuantity } from './encodings.ts'
import type { RpcCall } from './envelope.ts'
import { createLogs } from './logs.ts'
import type { Method } from './methods.ts'
import { type Refusal, refuse } from './rpc-error.ts'
import { createSender } from './send.ts'
import { type BlockTarget, hashTarget, liveTarget, numberTarget } from './target.ts'
import { createBlockReader } from './wrong-block.ts'

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

const overHttp = refuse(
  'RPC_METHOD_NOT_FOUND',
  'Subscriptions need a WebSocket: connect to /<chain>/<network>/v1/ws/<api_key>.',
)
const noFilter = refuse('FILTER_NOT_FOUND', 'filter not found')
const noFilters = refuse('RPC_METHOD_NOT_FOUND', 'Filters are not served here.')

/** Makes the way from a call to its answer: cache, calls on their way, nodes. */
export function createDispatch(options: DispatchOptions): Dispatch {
  const { view, cache } = options
  const flights = createFlights()
  const readBlock = createBlockReader()
  const branch = createBranchCheck(view, readBlock)
  const progress = createProgress(options)
  const textOf = createHeadText()
  const ask = createAskNodes({ ...options, flights, progress, branch, readBlock, textOf })
  const fetchLogs = createLogs({ ...options, flights, progress, branch })
  const send = createSender({ ...options, progress })
  const callFilter: Dispatch = options.filters ?? ((_1, _2, _3, done) => done(refused(noFilters)))
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

/** The text of the head is made once per block, not once per call. */
function createHeadText(): (number: number) => RawJson {
  let numberOfHead = -1
  let textOfHead = ''
  return (number) => {
    if (number !== numberOfHead) {
      numberOfHead = number
      textOfHead = `"${toQuantity(number)}"`
    }
    return textOfHead
  }
}
