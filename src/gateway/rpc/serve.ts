// JSON-RPC of the gateway, from the bytes of a request to the bytes of its answer: envelope and parameters are
// checked, the rate limit is charged, and a call is answered from the cache, by joining an equal call, or by a
// node. It uses the pool, the canonical chain, `gateway/cache` and `domain/access`. It guarantees one answer per
// call in the order of the batch, that an answer of a node passes byte for byte except for the documented
// corrections, and that no error names a node.

import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import {
  type Admission,
  admitBody,
  maxBodyValues,
  type Paid,
  smallBodyBytes,
} from '../../domain/access/admit.ts'
import type { Principal } from '../../domain/access/principal.ts'
import { createAnswerTurns } from '../../domain/limits/answer-turns.ts'
import type { Decision } from '../../domain/limits/decision.ts'
import { largeAnswerBytes } from '../../domain/limits/loop-pace.ts'
import { isDatabaseUnavailable } from '../../storage/pg/errors.ts'
import type { Network } from '../network.ts'
import type { Session } from '../streams/session.ts'
import { type Answer, refused } from './answer.ts'
import { createBatches } from './batch.ts'
import { glimpseId, maxDepth, type ReadEnvelope, type RpcCall, tooDeep } from './envelope.ts'
import { type Refusal, refuse, resultPieces } from './rpc-error.ts'
import { alone, noteLarge, overLimit, retryAfterOf, type Served, textOf } from './served.ts'

/**
 * Answers a body of one or many calls; `done` is called exactly once. `ahead` is what was counted when the
 * length of the body was announced. If that was refused, the two ends of the body are enough.
 */
export type Serve = (
  network: Network,
  principal: Principal,
  body: RawJson,
  done: (served: Served) => void,
  ahead?: Paid,
) => void

const tooManyValues = refuse(
  'BODY_TOO_LARGE',
  `The body holds more than ${maxBodyValues} values.`,
  { limit: maxBodyValues },
)
const answersWait = refuse(
  'RATE_LIMITED',
  'Large answers of the organization wait, while others use the service.',
)
const internal = refuse('INTERNAL')
const databaseAway: Refusal = { ...refuse('DATABASE_UNAVAILABLE'), retryAfter: 1 }

/** The answer for an internal error. */
export const faultOf = (error: unknown): Answer => {
  if (error instanceof OperationError && error.reason !== 'DATABASE_UNAVAILABLE') {
    const { reason, retryAfter } = error
    return refused({ ...refuse(reason), ...(retryAfter !== undefined && { retryAfter }) })
  }
  const isAway = error instanceof OperationError || isDatabaseUnavailable(error)
  return refused(isAway ? databaseAway : internal)
}

const unread = { id: undefined, method: '', params: '[]', args: [] }

/** Counts a body that is refused before its calls are known. */
export const countUnread = (
  network: Network,
  principal: Principal,
  refusal: Refusal,
  /** Whether the limits have not counted it either, because they refused it. */
  isOverLimit: boolean,
): void =>
  network.countRefused(
    { ...unread, refusal },
    network.sessionOf(principal),
    refused(refusal),
    isOverLimit,
  )

/** Makes the way from a body to its answer: read, count, call, put together. */
export function createServe(options: {
  read: ReadEnvelope
  admission: Admission
  maxBatchBytes: number
}): Serve {
  const { read, admission } = options
  const turns = createAnswerTurns(admission)
  const { serveBatch, serveRest } = createBatches(options)

  const serveSingle = (
    network: Network,
    session: Session,
    call: RpcCall,
    decision: Decision,
    done: (served: Served) => void,
  ) => {
    network.call(call, session, (answer) => {
      const { id } = call
      const { refusal, hit, number, hash } = answer
      const served: Served = {
        status: id === undefined ? 204 : (refusal?.status ?? 200),
        body: id === undefined ? '' : textOf(id, answer),
        decision,
        hit,
        number,
        hash,
        retryAfter: refusal?.retryAfter,
      }
      if (served.body.length > largeAnswerBytes) {
        noteLarge(admission.pace, session, served.body, hit)
        if (answer.ok) served.pieces = resultPieces(id as RawJson, answer.text)
      }
      done(served)
    })
  }

  /** Serves a body of one call, or refuses the call. */
  const proceed = (
    network: Network,
    principal: Principal,
    call: RpcCall,
    decision: Decision,
    done: (served: Served) => void,
  ) => {
    const session = network.sessionOf(principal)
    if (decision.allowed) return serveSingle(network, session, call, decision, done)
    const over = refused(overLimit(decision))
    network.countRefused(call, session, over, true)
    done({
      ...alone(over, call.id),
      decision,
      retryAfter: retryAfterOf(decision),
    })
  }

  /** Refuses a body as a whole. What cannot be read counts all the same. */
  const refuseWhole = (
    network: Network,
    principal: Principal,
    refusal: Refusal,
    decision: Decision,
    done: (served: Served) => void,
    { id, paid = 0 }: { id?: RawJson | undefined; paid?: number } = {},
  ) => {
    // Others have taken something of the limits: a pace refuses them, or values that do not fit.
    countUnread(network, principal, refusal, !decision.allowed && paid === 0)
    const retryAfter = decision.allowed ? refusal.retryAfter : retryAfterOf(decision)
    done({ ...alone(refused(refusal), id), decision, retryAfter })
  }

  /** A body that may take long to parse: it is admitted by its size and its values before. */
  const serveLarge = async (
    network: Network,
    principal: Principal,
    body: RawJson,
    done: (served: Served) => void,
    ahead: Paid | undefined,
  ): Promise<void> => {
    const { organization_id } = principal
    const { chain } = network
    const size = { bytes: body.length, text: () => body, maxDepth, ahead }
    const admitted = await admitBody(admission, { organization_id, chain }, size)
    const { decision, paid, shape } = admitted
    const refuseIt = (refusal: Refusal, id?: RawJson) =>
      refuseWhole(network, principal, refusal, decision, done, { id, paid })
    if (!decision.allowed) return refuseIt(overLimit(decision), glimpseId(body))
    if (admitted.refusal) {
      const { reason, message, retryAfter = 1 } = admitted.refusal
      return refuseIt({ ...refuse(reason, message), retryAfter }, glimpseId(body))
    }
    if (shape?.beyond) return refuseIt(shape.beyond === 'depth' ? tooDeep : tooManyValues)
    const { batch, calls, refusal } = read(body)
    if (refusal) return refuseIt(refusal)
    await admission.letOthersRun(organization_id, body.length)
    // A body of one call was counted by its size and its values in `admitBody`; nothing is left to count.
    inTurn(network, principal, body, decision, done, (done) => {
      if (!batch) return proceed(network, principal, calls[0] as RpcCall, decision, done)
      serveRest(network, principal, calls, paid, decision, done).catch((error) => fail(error, done))
    })
  }

  /** Reads and serves a body of which the first call was counted before: a batch is known only when it is read. */
  const serveSmall = (
    network: Network,
    principal: Principal,
    body: RawJson,
    decision: Decision,
    done: (served: Served) => void,
  ) => {
    const { batch, calls, refusal } = read(body, !decision.allowed)
    if (refusal) {
      // Why it failed is the better answer, also for one that is over a limit.
      countUnread(network, principal, refusal, !decision.allowed)
      done({ ...alone(refused(refusal)), decision })
    } else if (!batch) proceed(network, principal, calls[0] as RpcCall, decision, done)
    else if (decision.allowed)
      serveRest(network, principal, calls, 1, decision, done).catch((error) => fail(error, done))
    // Its params were not parsed: none of its calls may be made.
    else serveBatch(network, network.sessionOf(principal), calls, 0, decision, done)
  }

  /** Runs a call after the large answers of its organization, or refuses it. */
  const inTurn = (
    network: Network,
    principal: Principal,
    body: RawJson,
    decision: Decision,
    done: (served: Served) => void,
    run: (done: (served: Served) => void) => void,
  ) => {
    const { organization_id } = principal
    if (!turns.mustWait(organization_id)) return run(done)
    turns.wait(organization_id, {
      bytes: body.length,
      run: (answered) => {
        let isAnswered = false
        const finish = (served: Served) => {
          isAnswered = true
          answered()
          done(served)
        }
        try {
          run(finish)
        } catch (error) {
          if (!isAnswered) fail(error, finish)
        }
      },
      refuse: () => {
        const retryAfter = Math.ceil(admission.pace.owedMs(organization_id) / 1_000)
        const refusal = { ...answersWait, retryAfter: Math.max(1, retryAfter) }
        refuseWhole(network, principal, refusal, decision, done, { id: glimpseId(body) })
      },
    })
  }

  /** Serves a small body when it is its turn. One over the limit is refused at once. */
  const enter = (
    network: Network,
    principal: Principal,
    body: RawJson,
    decision: Decision,
    done: (served: Served) => void,
  ) => {
    if (!decision.allowed || !turns.mustWait(principal.organization_id))
      return serveSmall(network, principal, body, decision, done)
    inTurn(network, principal, body, decision, done, (done) =>
      serveSmall(network, principal, body, decision, done),
    )
  }

  return (network, principal, body, done, ahead) => {
    if (ahead !== undefined || body.length > smallBodyBytes) {
      serveLarge(network, principal, body, done, ahead).catch((error) => fail(error, done))
      return
    }
    // Counted before it is read, so that malformed bodies are not free.
    const decision = admission.admit(principal.organization_id, network.chain, 1)
    if (decision instanceof Promise)
      decision.then(
        (known) => enter(network, principal, body, known, done),
        (error) => fail(error, done),
      )
    else enter(network, principal, body, decision, done)
  }
}

const fail = (error: unknown, done: (served: Served) => void): void => done(alone(faultOf(error)))
