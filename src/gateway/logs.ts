import type { Pool, PoolOutcome, PoolRequest, RawJson } from '../chains/upstream/pool-types.ts'
import { type Answer, answered, failed, refused } from './answer.ts'
import type { AnswerCache } from './cache.ts'
import type { ChainView } from './chain-view.ts'
import { filterHash, type LogFilter } from './check-filter.ts'
import type { Dispatch } from './dispatch.ts'
import { isQuantity } from './encodings.ts'
import type { Flights } from './flights.ts'
import { heightOf, ranged, rangeTooLarge, written } from './log-range.ts'
import { createLogSplitter, type SplitLogs } from './log-splitter.ts'
import type { Method } from './methods.ts'
import { isMissingBlock, isRefusedRange } from './node-errors.ts'
import type { Progress } from './progress.ts'
import { refuse } from './rpc-error.ts'
import type { Session } from './session.ts'

/** What is asked for: a range of blocks, one block by its hash, or what only a node can tell. */
type Query = {
  key: string
  params: RawJson
  /** The range; -1 where only a node knows it. */
  from: number
  to: number
  /** Of the last block; empty when not known. */
  hash: string
  minBlock: number
  isKept: boolean
}

const maxSplits = 3

const reversed = refuse(
  'INVALID_PARAMS',
  'parameter 1 (filter) fromBlock must not be after toBlock',
  { parameter: 'filter', index: 0 },
)

/** Makes the way of `getLogs`: pinned to blocks, split where nodes refuse the range. */
export function createLogs(options: {
  pool: Pool
  view: ChainView
  cache: AnswerCache | undefined
  flights: Flights
  timeoutMs: number
  maxLogRange: number
  progress: Progress
  now(): number
}): Dispatch {
  const { pool, view, cache, flights, timeoutMs, maxLogRange, progress, now } = options
  const split = createLogSplitter({ pool, now, timeoutMs })

  /** Parts that were read before and after a change of the chain do not belong together. */
  const splitAtRest: SplitLogs = async (...range) => {
    for (let attempt = 0; attempt < maxSplits; attempt++) {
      const begun = view.generation()
      const outcome = await split(...range)
      if ('failure' in outcome || !outcome.ok || begun === view.generation()) return outcome
    }
    return { failure: 'ABORTED' }
  }

  const plan = (method: Method, raw: RawJson, filter: LogFilter, session: Session): Query => {
    const head = progress.usableHead(session)
    const minBlock = progress.lowest(session)
    const params = written(filter, raw)
    const live: Query = {
      key: `${method.name}>${minBlock}${raw}`,
      params,
      from: -1,
      to: -1,
      hash: '',
      minBlock,
      isKept: false,
    }
    const hash = filterHash(filter)?.toLowerCase()
    if (hash !== undefined) {
      const number = view.numberOf(hash) ?? -1
      const isKept = number >= 0
      return { ...live, key: method.name + raw, from: number, to: number, hash, isKept }
    }
    if (!head) return live
    const from = heightOf(filter.fromBlock, head)
    const to = heightOf(filter.toBlock, head)
    // What lies beyond the head may be there already: a node is asked as the client asked.
    if (from < 0 || to < 0 || from > head.number) return live
    if (!cache || to > head.number) return { ...live, from, to }
    const fixed = isQuantity(filter.fromBlock) && isQuantity(filter.toBlock)
    return {
      key: fixed ? method.name + raw : `${method.name}@${head.number}${raw}`,
      params: fixed ? params : ranged(filter, from, to),
      from,
      to,
      hash: view.hashAt(to) ?? (to === head.number ? head.hash : ''),
      minBlock: minBlock < 0 ? -1 : Math.max(to, progress.leastOf(session)),
      isKept: true,
    }
  }

  const keep = ({ key, to: number, hash }: Query, result: RawJson) => {
    if (number <= view.final() || (hash !== '' && view.hashAt(number) === hash))
      cache?.keep(key, { result, number, hash }, view)
  }

  const fetch = (method: Method, filter: LogFilter, query: Query, land: Land) => {
    const { params, minBlock, from, to } = query
    const request: PoolRequest = {
      method: method.name,
      params,
      idempotent: true,
      timeoutMs,
      isUseless: method.isUseless,
    }
    if (minBlock >= 0) request.minBlock = minBlock
    const begun = view.generation()
    const conclude: Land = (outcome) => {
      if ('failure' in outcome) return land(outcome)
      const reply = method.fix ? method.fix(outcome, []) : outcome
      if (query.isKept && reply.ok && begun === view.generation()) keep(query, reply.result)
      land(reply)
    }
    pool.send(request, (outcome) => {
      const error = 'failure' in outcome || outcome.ok ? undefined : outcome.error
      if (error === undefined || from < 0) return conclude(outcome)
      const head = pool.head()?.number ?? -1
      if (isMissingBlock(error) && from <= head && head < to)
        pool.send({ ...request, params: ranged(filter, from, head) }, conclude)
      else if (isRefusedRange(error) && from < to)
        splitAtRest(request, filter, from, to).then(conclude, () =>
          conclude({ failure: 'ABORTED' }),
        )
      else conclude(outcome)
    })
  }

  return (method, call, session, done) => {
    const filter = call.args[0] as LogFilter
    const query = plan(method, call.params, filter, session)
    const { from, to, isKept } = query
    if (from > to) return done(refused(reversed))
    if (to - from >= maxLogRange) return done(refused(rangeTooLarge(maxLogRange, from)))
    const see = (number: number) => {
      if (!isQuantity(filter.toBlock)) progress.see(session, number)
    }
    const entry = isKept ? cache?.find(query.key, view) : undefined
    if (entry) {
      see(entry.number)
      const { result: text, number, hash } = entry
      return done({ ok: true, text, refusal: undefined, hit: true, number, hash })
    }
    const finish = (outcome: PoolOutcome) => {
      const answer = answerOf(outcome, query)
      if (answer.ok) see(to)
      done(answer)
    }
    if (flights.join(query.key, finish)) return
    fetch(method, filter, query, flights.open(query.key, finish))
  }
}

type Land = (outcome: PoolOutcome) => void

function answerOf(outcome: PoolOutcome, { to, hash, isKept }: Query): Answer {
  if ('failure' in outcome) return failed(outcome.failure)
  if (!outcome.ok) {
    const answer = answered(outcome.error)
    answer.ok = false
    // What the splitter gave up on is refused by the gateway, not by a node.
    if (outcome.error.includes('"reason":"LOG_RANGE_TOO_LARGE"'))
      answer.refusal = { reason: 'LOG_RANGE_TOO_LARGE', status: 200, error: outcome.error }
    return answer
  }
  const answer = answered(outcome.result)
  if (!isKept) return answer
  answer.hit = false
  if (hash !== '') {
    answer.number = to
    answer.hash = hash
  }
  return answer
}
