import { accessOf } from '../../contract/access.ts'
import { errors, OperationError } from '../../contract/errors/errors.ts'
import type { Principal } from '../access/principal.ts'
import type { Concerns } from './event.ts'
import type { AuditTrail } from './trail.ts'

/** The part of the trail that counts refusals. */
export type RefusalCounts = Pick<AuditTrail, 'refused' | 'unauthenticated'>

type Call = { principal: Principal; client: string; service: string; operation: string }

/** Does the work of an operation, with an event where it changes something or shows a secret. */
export const performOperation = <result>(
  audit: AuditTrail | undefined,
  call: Call,
  request: unknown,
  work: (concerns?: Concerns) => Promise<result>,
): Promise<result> => {
  if (!audit || accessOf({ name: call.operation }) === 'read') return work()
  return audit.perform({ actor_type: 'ACTOR_TYPE_CREDENTIAL', ...call, request }, work)
}

/** Records that the answer of an earlier request with the same idempotency key is given again. */
export const noteReplay = async (
  audit: AuditTrail | undefined,
  call: Call,
  request: unknown,
  answer: string,
): Promise<void> =>
  await audit?.replayed(
    { actor_type: 'ACTOR_TYPE_CREDENTIAL', ...call, request },
    JSON.parse(answer),
  )

/** Counts failed authentications and refused authorizations; no other failure. */
export function noteRefusal(
  audit: RefusalCounts,
  call: Omit<Call, 'principal'> & { principal: Principal | undefined },
  error: unknown,
): void {
  if (!(error instanceof OperationError)) return
  const { reason } = error
  const { status } = errors[reason]
  const { principal } = call
  if (principal && status === 403)
    audit.refused({ actor_type: 'ACTOR_TYPE_CREDENTIAL', ...call }, reason)
  else if (!principal && (status === 401 || unsignedReasons.has(reason)))
    audit.unauthenticated(call.client, call.service, reason)
}

// Reasons that a request may get before its signature was checked.
const unsignedReasons: ReadonlySet<string> = new Set(['PERMISSION_DENIED', 'TOO_MANY_FAILURES'])

/** Counts a refused gateway key: of a known credential as an authorization, else as an authentication. */
export function noteGatewayRefusal(
  audit: RefusalCounts | undefined,
  { principal, client, chain }: { principal?: Principal; client: string; chain: string },
  reason: string,
): void {
  const called = { principal, client, service: chain, operation: 'Gateway' }
  if (principal) audit?.refused({ actor_type: 'ACTOR_TYPE_CREDENTIAL', ...called }, reason)
  else audit?.unauthenticated(client, chain, reason)
}
