import { OperationError } from '../../contract/errors/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Ids, isUuid } from '../../lib/ids.ts'
import type { ActorType, AuditResult, PendingAuditRow } from '../../storage/audit/tables.ts'
import type { Principal } from '../access/principal.ts'
import { targetOf } from './target.ts'

/** The actor and the action, before the action runs. */
export type AuditSubject = {
  actor_type: ActorType
  principal?: Principal | undefined
  /** The client address, or the user of the command line. */
  client: string
  service: string
  operation: string
  request?: unknown
}

/** What a change turned out to concern. */
export type Concerned = { organization_id: string; credential_id: string }

/** Takes what a change concerns while it runs. */
export type Concerns = (found: Concerned) => void

/** How an event ended. */
export type AuditEnd = {
  result: AuditResult
  answer?: unknown
  error?: unknown
  concerned?: Concerned | undefined
}

/** The event of a change that has not begun. */
export function makeEvent(
  { clock, ids }: { clock: Clock; ids: Ids },
  subject: AuditSubject,
): PendingAuditRow {
  const { actor_type, principal, service, operation } = subject
  // A command has no credential; its event names the user of the machine as the client.
  const isOperator = actor_type === 'ACTOR_TYPE_COMMAND_LINE'
  const known = isOperator ? undefined : principal
  const target = targetOf(subject.request)
  return {
    event_id: ids.uuid(),
    event_time: new Date(clock.now()),
    actor_type,
    credential_id: known?.credential_id ?? null,
    role: known?.role ?? null,
    principal_organization_id: known?.organization_id ?? null,
    organization_id: concernedBy(subject, target) ?? known?.organization_id ?? null,
    ...{ service, operation, result: null, reason: null, event_count: 1 },
    detail: JSON.stringify({ client: subject.client, target }),
  }
}

/** The same with its result. */
export function endEvent(
  event: PendingAuditRow,
  subject: AuditSubject,
  { result, answer, error, concerned }: AuditEnd,
): PendingAuditRow {
  const target = targetOf({ ...concerned, ...(subject.request ?? {}) }, answer)
  const isRefused = error instanceof OperationError && error.reason === 'PERMISSION_DENIED'
  const reason = error instanceof OperationError ? error.reason : 'INTERNAL'
  return {
    ...event,
    result: isRefused ? 'AUDIT_RESULT_REFUSED' : result,
    reason: result === 'AUDIT_RESULT_FAILED' ? reason : null,
    // Many requests name a thing and not its organization.
    organization_id:
      concerned?.organization_id ?? concernedBy(subject, target) ?? event.organization_id,
    detail: JSON.stringify({ client: subject.client, target }),
  }
}

/** Only a principal that may act for any organization writes to the log of another one. */
function concernedBy(
  { actor_type, principal }: AuditSubject,
  { organization_id }: Record<string, unknown>,
): string | undefined {
  const mayName = actor_type === 'ACTOR_TYPE_COMMAND_LINE' || principal?.role === 'ROLE_ADMIN'
  return mayName && typeof organization_id === 'string' && isUuid(organization_id)
    ? organization_id
    : undefined
}
