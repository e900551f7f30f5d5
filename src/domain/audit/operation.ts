import { accessOf } from '../../contract/access.ts'
import { errors, OperationError } from '../../contract/errors/errors.ts'
import type { Principal } from '../access/principal.ts'
import type { AuditTrail } from './trail.ts'

type Call = { principal: Principal; client: string; service: string; operation: string }

/** Does the work of an operation, with an event where it changes something or shows a secret. */
export const performOperation = <result>(
  audit: AuditTrail | undefined,
  call: Call,
  request: unknown,
  work: () => Promise<result>,
): Promise<result> => {
  if (!audit || accessOf({ name: call.operation }) === 'read') return work()
  return audit.perform({ actor_type: 'ACTOR_TYPE_CREDENTIAL', ...call, request }, work)
}

/** Counts failed authentications and refused authorizations; other failures are none of both. */
export function noteRefusal(
  audit: AuditTrail,
  call: Omit<Call, 'principal'> & { principal: Principal | undefined },
  error: unknown,
): void {
  if (!(error instanceof OperationError)) return
  const { reason } = error
  const { status } = errors[reason]
  const { principal } = call
  if (principal && status === 403)
    audit.refused({ actor_type: 'ACTOR_TYPE_CREDENTIAL', ...call }, reason)
  else if (!principal && (status === 401 || reason === 'PERMISSION_DENIED'))
    audit.unauthenticated(call.client, call.service, reason)
}
