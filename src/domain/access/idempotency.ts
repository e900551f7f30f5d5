// Idempotency keys of creating operations. The answer is stored in the transaction that creates, so neither is there
// without the other. Answers may hold secrets, so they are sealed.

import { createHash } from 'node:crypto'
import { OperationError } from '../../contract/errors/errors.ts'
import {
  idempotencyHeader,
  idempotencyHours,
  idempotencyKeyPattern,
} from '../../contract/idempotency.ts'
import { maxIdempotencyKeys } from '../../contract/limits.ts'
import { invalidRequest } from '../../contract/validate.ts'
import {
  answerIdempotencyKey,
  type Claim,
  type Claimed,
  claimIdempotencyKey,
  countIdempotencyKeys,
  releaseIdempotencyKey,
} from '../../storage/access/idempotency-keys.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { Context } from '../context.ts'

/** A creating request with an idempotency key. */
export type IdempotentRequest = {
  key: string
  operation: string
  body: Uint8Array
  /** Carries it out. What it creates is recorded through `Context.record`. */
  perform(context: Context): Promise<unknown>
  /** The body of the answer. */
  render(result: unknown): string
}

/** Carries out requests once per key. */
export type Idempotency = {
  run(
    context: Context,
    request: IdempotentRequest,
  ): Promise<{ answer: string; isReplayed: boolean }>
}

/** After a crash a repetition waits no longer than this. A slower operation loses its claim and is undone. */
const claimMs = 15_000
/** Counting is not done for every request; the limit may be exceeded by what arrives meanwhile. */
const countEveryMs = 30_000
const maxCounted = 10_000

const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest()

/** The use that a stored answer is sealed for. */
export const answerContext = (credential_id: string, key_hash: Buffer): string =>
  `idempotency_key.answer:${credential_id}:${key_hash.toString('hex')}`

/**
 * Makes the repetition of a creating request harmless, over all processes and across crashes. A claim is
 * committed first. The answer is committed by the transaction that creates, on the condition that the
 * claim is still held: of two requests that run at once only one can commit. After a crash the claim
 * has an answer if and only if something was created.
 */
export function createIdempotency(): Idempotency {
  const counts = new Map<string, { count: number; until: number }>()

  const checkRoom = async ({ db, clock, principal }: Context) => {
    const { organization_id } = principal
    const now = clock.now()
    let known = counts.get(organization_id)
    if (!known || known.until <= now) {
      const count = await countIdempotencyKeys(db, organization_id, maxIdempotencyKeys)
      known = { count, until: now + countEveryMs }
      if (counts.size >= maxCounted) counts.delete(counts.keys().next().value as string)
      counts.set(organization_id, known)
    }
    if (known.count >= maxIdempotencyKeys)
      throw new OperationError('TOO_MANY_IDEMPOTENCY_KEYS', { retryAfter: countEveryMs / 1000 })
    known.count++
  }

  const carryOut = async (context: Context, claim: Claim, request: IdempotentRequest) => {
    const use = answerContext(claim.credential_id, claim.key_hash)
    let recorded: string | undefined
    const record = async (db: Db, result: unknown) => {
      const answer = request.render(result)
      if (!(await answerIdempotencyKey(db, claim, context.sealer.seal(answer, use))))
        throw new OperationError('IDEMPOTENCY_KEY_IN_USE', { retryAfter: 1 })
      recorded = answer
    }
    try {
      const result = await request.perform({ ...context, record })
      // An operation that found everything there already has created nothing that it could be recorded with.
      if (recorded === undefined) await record(context.db, result)
      return recorded as unknown as string
    } catch (error) {
      // Does nothing where the answer was committed before the failure: a repetition gets it.
      await releaseIdempotencyKey(context.db, claim).catch(() => {})
      throw error
    }
  }

  const answerOf = (context: Context, claim: Claim, found: Claimed): string => {
    if (found.operation !== claim.operation || !found.request_hash.equals(claim.request_hash))
      throw new OperationError('IDEMPOTENCY_KEY_REUSED')
    if (!found.answer_sealed) {
      const ms = found.claim_until.getTime() - context.clock.now()
      const retryAfter = Math.max(1, Math.ceil(ms / 1000))
      throw new OperationError('IDEMPOTENCY_KEY_IN_USE', { retryAfter })
    }
    const use = answerContext(claim.credential_id, claim.key_hash)
    return context.sealer.open(found.answer_sealed, use).toString('utf8')
  }

  return {
    run: async (context, request) => {
      checkKey(request.key)
      await checkRoom(context)
      const now = context.clock.now()
      const claim: Claim = {
        credential_id: context.principal.credential_id,
        key_hash: sha256(request.key),
        organization_id: context.principal.organization_id,
        operation: request.operation,
        request_hash: sha256(request.body),
        claim_id: context.ids.uuid(),
        claim_until: new Date(now + claimMs),
        expire_time: new Date(now + idempotencyHours * 3_600_000),
      }
      const found = await claimIdempotencyKey(context.db, claim, new Date(now))
      return found
        ? { answer: answerOf(context, claim, found), isReplayed: true }
        : { answer: await carryOut(context, claim, request), isReplayed: false }
    },
  }
}

function checkKey(key: string): void {
  if (idempotencyKeyPattern.test(key)) return
  const detail = 'Must be 1 to 255 visible ASCII characters.'
  throw invalidRequest([{ field: idempotencyHeader, reason: 'INVALID_HEADER', detail }])
}
