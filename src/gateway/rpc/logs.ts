// `getLogs`. A range belongs to one branch: it is pinned to numbers, and read again if the branch changes meanwhile. Where
// nodes refuse a range, it is asked for in parts. A block that is named by its hash must be in the chain (EIP-234).

import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
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
import { type Answer, answered, type Dispatch, failed, refused } from './answer.ts'
import { type BranchCheck, reachBranch, type Standing } from './branch-check.ts'
import type { LogFilter } from './check-filter.ts'
import { isQuantity, toNumber, toQuantity } from './encodings.ts'
import { createLogPlanner, type LogPlan } from './log-plan.ts'
import { nodeTagsOf, ranged, rangeTooLarge } from './log-range.ts'
import { createLogSplitter, type SplitLogs } from './log-splitter.ts'
import { createNodeTags } from './log-tags.ts'
import type { Method } from './methods.ts'
import { isNull, isRefusedRange } from './node-errors.ts'
import { refuse } from './rpc-error.ts'
import { withTopics } from './topics.ts'

// Splits of one range across a switch of the branch. A chain that never rests must not hold a call for ever.
const maxSplits = 3
const gatewayReasons = ['LOG_RANGE_TOO_LARGE', 'LOG_BLOCK_NOT_FOUND'] as const
/** No answer that is known to be of the canonical branch. */
const unseen = { result: '', begun: -1, generation: -1 }
const unknownBlock = refuse('LOG_BLOCK_NOT_FOUND', 'unknown block')
const noBlock = { ok: false, error: unknownBlock.error } as const

/** What `getLogs` is answered with. */
type LogsOptions = {
  pool: Pool
  view: Canonical
  cache: AnswerCache | undefined
  flights: Flights
  timeoutMs: number
  maxLogRange: number
  progress: Progress
  branch: BranchCheck
  now(): number
}

/** Makes the way of `getLogs`: pinned to blocks, split where nodes refuse the range. */
export function createLogs(options: LogsOptions): Dispatch {
  const { pool, view, cache, flights, timeoutMs, maxLogRange, progress } = options
  const planner = createLogPlanner({ view, progress, maxLogRange, isCached: cache !== undefined })
  const nodeTags = createNodeTags({ pool, view, timeoutMs })
  const fetch = createLogFetch(options)

  const answer = (
    method: Method,
    raw: RawJson,
    filter: LogFilter,
    session: Session,
    done: (answer: Answer) => void,
  ) => {
    const tooWideFrom = planner.tooWideFrom(filter, session)
    if (tooWideFrom >= 0) return done(refused(rangeTooLarge(maxLogRange, tooWideFrom)))
    const query = planner.plan(method, raw, filter, session)
    // A range with a fixed end shows the client no newer head.
    const see = (number: number) => {
      if (!isQuantity(filter.toBlock)) progress.see(session, number)
    }
    const entry = query.isKept ? cache?.find(query.key, view) : undefined
    if (entry) {
      see(entry.number)
      const { result: text, number, hash } = entry
      return done({ ok: true, text, refusal: undefined, hit: true, number, hash })
    }
    const finish = (outcome: PoolOutcome) => {
      const answer = answerOf(outcome, query)
      if (answer.ok) see(query.to)
      done(answer)
    }
    // Equal queries under way share one request to the nodes.
    if (flights.join(query.key, finish)) return
    fetch(method, query, flights.open(query.key, finish))
  }

  return (method, { args, params }, session, done) => {
    const filter = args[0] as LogFilter
    // `safe` and `finalized` are resolved once, so that all parts of a split range mean the same block.
    if (nodeTagsOf(filter).length === 0) return answer(method, params, filter, session, done)
    nodeTags.resolve(method, filter).then(
      (resolved) => {
        if ('failure' in resolved) return done(failed(resolved.failure))
        if ('error' in resolved) return done({ ...answered(resolved.error), ok: false })
        const numbered = { ...filter }
        for (const name of ['fromBlock', 'toBlock'] as const) {
          const number = resolved.numbers.get(filter[name] ?? '')
          if (number !== undefined) numbered[name] = toQuantity(number)
        }
        answer(method, JSON.stringify([numbered]), numbered, session, done)
      },
      () => done(failed('ABORTED')),
    )
  }
}

type Land = (outcome: PoolOutcome) => void

/** Asks the nodes for a query until the answer is of one branch, keeps it, and lands it. */
function createLogFetch({ pool, view, cache, timeoutMs, now, branch }: LogsOptions) {
  const split = createLogSplitter({ pool, now, timeoutMs })

  /** Parts that were read before and after a change of the chain do not belong together. */
  const splitAtRest: SplitLogs = async (...range) => {
    for (let attempt = 0; attempt < maxSplits; attempt++) {
      const begun = view.generation()
      const outcome = await split(...range)
      if ('failure' in outcome || !outcome.ok) return outcome
      if (view.isLinking()) await view.settle()
      if (begun === view.generation()) return outcome
    }
    return { failure: 'ABORTED' }
  }

  const keep = ({ key, number, hash }: LogPlan, result: RawJson) => {
    if (result === 'null') return
    // Only what is final, or belongs to a block that is canonical now: an entry is found again by its block.
    if (number <= view.final() || (hash !== '' && view.hashAt(number) === hash))
      cache?.keep(key, { result, number, hash }, view)
  }

  /**
   * What a node refuses is asked for up to the head, then in parts. When that does not help either the
   * first error is the answer: it is about what the client asked for.
   */
  const narrow = async (request: PoolRequest, query: LogPlan, first: RpcReply) => {
    const { filter, from, to } = query
    const end = Math.min(to, view.head()?.number ?? -1)
    let outcome: PoolOutcome = first
    if (from <= end && end < to)
      outcome = await pool.request({ ...request, params: ranged(filter, from, end) })
    if (!('failure' in outcome) && !outcome.ok && from < end && isRefusedRange(outcome.error))
      outcome = await splitAtRest(request, filter, from, end)
    // An error of a part is about blocks that the client did not name. Only our own errors pass.
    const isOurs =
      'failure' in outcome
        ? outcome.failure === 'ABORTED'
        : outcome.ok || reasonOf(outcome.error) !== undefined
    return isOurs ? outcome : first
  }

  /** EIP-234: of a block that is not in the chain there are no logs, not even none. */
  const confirm = async (method: Method, { hash }: LogPlan, reply: RpcReply & { ok: true }) => {
    let number = numberIn(reply.result, 'blockNumber')
    if (number < 0) {
      const outcome = await pool.request({
        method: method.name.replace(/getLogs$/, 'getBlockByHash'),
        params: `["${hash}",false]`,
        idempotent: true,
        timeoutMs,
        isUseless: isNull,
      })
      if ('failure' in outcome || !outcome.ok) return outcome
      if (outcome.result === 'null') return { ok: false as const, error: unknownBlock.error }
      number = numberIn(outcome.result, 'number')
    }
    // Nodes keep orphaned blocks for a while and answer for them.
    const best = view.bestHashAt(number)
    const isOrphaned = view.isGone(hash) || (best !== undefined && best !== hash)
    return isOrphaned ? { ok: false as const, error: unknownBlock.error } : reply
  }

  /** Asks the nodes; `begun` is the generation of the chain at that time. */
  const fetchOnce = (
    method: Method,
    query: LogPlan,
    done: (outcome: PoolOutcome, begun: number) => void,
  ) => {
    const { params, minBlock, from } = query
    const begun = view.generation()
    const request: PoolRequest = {
      method: method.name,
      params,
      idempotent: true,
      timeoutMs,
      isUseless: (reply) =>
        isNull(reply) || (reply.ok && standingOf(query, reply.result, begun) === 'off'),
    }
    if (minBlock >= 0) request.minBlock = minBlock
    const finish = (outcome: PoolOutcome) => {
      if ('failure' in outcome || !outcome.ok) return done(outcome, begun)
      inTurn(outcome.result, () => {
        const fixed = method.fix ? method.fix(outcome, []) : outcome
        const isTrimmed = fixed.ok && query.leastTopics > 0
        const final = isTrimmed ? trimmed(fixed.result, query.leastTopics) : fixed
        inTurn(outcome.result, () => done(final, begun))
      })
    }
    pool.send(request, (outcome) => {
      if ('failure' in outcome || outcome.ok || from < 0) return finish(outcome)
      narrow(request, query, outcome).then(finish, () => done({ failure: 'ABORTED' }, begun))
    })
  }

  const standingOf = ({ from, to, hash }: LogPlan, result: RawJson, begun: number): Standing => {
    // Asked for by its hash, and gone meanwhile: EIP-234 wants an error, also where it has no logs.
    if (from < 0 && hash !== '' && view.isGone(hash)) return 'off'
    // A range that was read across a switch may lack logs of either branch.
    const standing = from >= 0 ? branch.since(begun, to) : 'on'
    if (standing !== 'on') return standing
    return result === '[]' ? 'on' : standingOfLogs(result, begun)
  }

  // An answer is looked at twice: by the pool, which may ask another node, and when it has arrived.
  let seen = unseen
  const standingOfLogs = (result: RawJson, begun: number): Standing => {
    const generation = view.generation()
    const isSettled = !view.isLinking() && !view.isDeepening()
    const isSame = seen.generation === generation && seen.begun === begun && seen.result === result
    if (isSettled && isSame) {
      seen = unseen
      return 'on'
    }
    const standing = branch.logs(result, begun)
    seen = standing === 'on' ? { result, begun, generation } : unseen
    return standing
  }

  const conclude = (
    method: Method,
    query: LogPlan,
    { outcome, begun }: { outcome: PoolOutcome; begun: number },
    land: Land,
  ) => {
    if ('failure' in outcome || !outcome.ok) return land(outcome)
    if (query.isKept && begun === view.generation()) keep(query, outcome.result)
    if (!query.isUnknownHash) return land(outcome)
    confirm(method, query, outcome).then(land, () => land({ failure: 'ABORTED' }))
  }

  return (method: Method, query: LogPlan, land: Land): void =>
    fetchOnce(method, query, (outcome, begun) => {
      const isResult = 'ok' in outcome && outcome.ok
      if (!isResult || standingOf(query, outcome.result, begun) === 'on')
        return conclude(method, query, { outcome, begun }, land)
      reachBranch({
        view,
        first: { outcome, begun },
        fetch: () =>
          new Promise((resolve) =>
            fetchOnce(method, query, (outcome, begun) => resolve({ outcome, begun })),
          ),
        standingOf: (result, begun) => standingOf(query, result, begun),
        // EIP-234: the block was asked for by its hash, and has left the chain.
        ifOff: () => (query.from < 0 && query.hash !== '' ? noBlock : undefined),
      }).then(
        (found) => conclude(method, query, found, land),
        () => land({ failure: 'ABORTED' }),
      )
    })
}

/** From here on each step with a text takes a turn of the event loop of its own: it takes some milliseconds. */
const longText = 524_288

const inTurn = (text: RawJson, step: () => void): void => {
  if (text.length > longText) setImmediate(step)
  else step()
}

const trimmed = (result: RawJson, least: number): RpcReply => ({
  ok: true,
  result: withTopics(result, least) ?? result,
})

const numbers = {
  number: /"number": ?"(0x[0-9a-f]{1,13})"/,
  blockNumber: /"blockNumber": ?"(0x[0-9a-f]{1,13})"/,
}
const numberIn = (text: RawJson, name: keyof typeof numbers): number => {
  const found = numbers[name].exec(text)?.[1]
  return found === undefined ? -1 : toNumber(found)
}

/** Why the gateway itself, and not a node, refuses. */
const reasonOf = (error: RawJson) =>
  gatewayReasons.find((reason) => error.includes(`"source":"gateway","reason":"${reason}"`))

function answerOf(outcome: PoolOutcome, { number, hash, isKept }: LogPlan): Answer {
  if ('failure' in outcome) return failed(outcome.failure)
  if (!outcome.ok) {
    const reason = reasonOf(outcome.error)
    if (reason) return refused({ reason, status: 200, error: outcome.error })
    return { ...answered(outcome.error), ok: false }
  }
  const answer = answered(outcome.result)
  if (!isKept) return answer
  answer.hit = false
  if (hash !== '') {
    answer.number = number
    answer.hash = hash
  }
  return answer
}
