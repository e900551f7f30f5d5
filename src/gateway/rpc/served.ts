import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { type Decision, isBlocked, retryAfterSeconds } from '../../domain/limits/decision.ts'
import { type LoopPace, largeAnswerBytes } from '../../domain/limits/loop-pace.ts'
import type { Session } from '../streams/session.ts'
import type { Answer } from './answer.ts'
import { errorAnswer, type Refusal, refuse, resultAnswer } from './rpc-error.ts'

/** The answer to a body, for whatever carries it. */
export type Served = {
  status: number
  /** Empty when nothing is answered. */
  body: RawJson
  /** The body in pieces, where it is large. Whatever reads a character of `body` makes one text of it, which is a copy. */
  pieces?: readonly RawJson[]
  decision: Decision | undefined
  hit: boolean | undefined
  number: number
  hash: string
  retryAfter: number | undefined
}

/** The text of one answer, with the id of its call. */
export const textOf = (id: RawJson, { ok, text }: Answer): RawJson =>
  ok ? resultAnswer(id, text) : errorAnswer(id, text)

/** The answer to a body that is refused as a whole. */
export const alone = (answer: Answer, id: RawJson = 'null'): Served => ({
  status: answer.refusal?.status ?? 500,
  body: textOf(id, answer),
  decision: undefined,
  hit: undefined,
  number: -1,
  hash: '',
  retryAfter: answer.refusal?.retryAfter,
})

// A limit of 0 does not end by waiting.
export const retryAfterOf = (decision: Decision): number | undefined =>
  isBlocked(decision) ? undefined : retryAfterSeconds(decision)

/** The refusal of a call that does not fit into a window (docs/decisions/limits.md). */
export function overLimit(decision: Decision): Refusal {
  const { window, limit } = decision
  if (isBlocked(decision)) return refuse('RATE_LIMIT_BLOCKED')
  return refuse('RATE_LIMITED', `The limit of ${limit} calls per ${window} is used up.`, {
    window,
    limit,
    retry_after: retryAfterSeconds(decision),
  })
}

/** Counts a large answer against the organization that it is for. */
export const noteLarge = (
  pace: Pick<LoopPace, 'answer'>,
  { principal }: Session,
  { length }: RawJson,
  hit: boolean | undefined,
): void => {
  if (length > largeAnswerBytes) pace.answer(principal.organization_id, length, hit === true)
}
