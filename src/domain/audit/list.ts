import { toTimestamp } from '../../lib/clock.ts'
import { isUuid } from '../../lib/ids.ts'
import { type AuditFilter, listAuditEvents } from '../../storage/audit/audit.ts'
import type { AuditEventRow } from '../../storage/audit/tables.ts'
import { getOrganization } from '../admin/organizations.ts'
import type { AdminHandler, Context } from '../context.ts'
import { readPage, sealPosition } from '../pages.ts'
import { readTimes } from '../time-range.ts'

/**
 * How many events are read for one page, whatever the filters: a rare filter returns short pages
 * with a token instead of a slow one.
 */
const scan = 2_000

/** Lists events of the organization, or for an administrator those of all. */
export const ListAuditEvents: AdminHandler<'ListAuditEvents'> = async (context, request) => {
  const { operation, credential_id, result } = request
  const organization_id = await organizationOf(context, request.organization_id)
  const { limit, after } = readPage<[string, number]>(context, request)
  const filter: AuditFilter = {
    organization_id,
    operation,
    credential_id,
    result,
    ...readTimes(request),
  }
  // Nothing that is not an id has events.
  const isKnown = credential_id === undefined || isUuid(credential_id)
  const { rows, next } = isKnown
    ? await listAuditEvents(context.db, filter, {
        limit,
        scan,
        after: after && { event_time: new Date(after[0]), sequence: after[1] },
      })
    : { rows: [], next: undefined }
  const next_page_token = next
    ? sealPosition(context, request, [toTimestamp(next.event_time), next.sequence])
    : ''
  return {
    audit_events: rows.map((row) => presentFor(context, row)),
    pagination: { next_page_token },
  }
}

async function organizationOf(
  context: Context,
  organization_id: string | undefined,
): Promise<string | undefined> {
  const { role, organization_id: own } = context.principal
  if (organization_id === undefined) return role === 'ROLE_ADMIN' ? undefined : own
  // The events of an organization outlive it.
  if (role === 'ROLE_ADMIN' && isUuid(organization_id)) return organization_id
  return (await getOrganization(context, organization_id)).organization_id
}

/** An organization sees what an administrator of the installation did to it, but not from where. */
function presentFor({ principal }: Context, row: AuditEventRow) {
  const isOwn =
    principal.role === 'ROLE_ADMIN' || row.principal_organization_id === principal.organization_id
  const { client, target } = JSON.parse(row.detail ?? '{}') as {
    client?: string
    target?: Record<string, unknown>
  }
  return {
    sequence: row.sequence,
    event_id: row.event_id,
    event_time: toTimestamp(row.event_time),
    actor_type: row.actor_type,
    credential_id: isOwn ? row.credential_id : null,
    role: row.role,
    principal_organization_id: isOwn ? row.principal_organization_id : null,
    organization_id: row.organization_id,
    service: row.service,
    operation: row.operation,
    result: row.result,
    reason: row.reason,
    event_count: row.event_count,
    client: isOwn ? (client ?? null) : null,
    target: target ?? null,
    hash: row.hash.toString('hex'),
  }
}
