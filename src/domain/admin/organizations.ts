// The operations of administrators: organizations, credentials, rate limits, quotas and usage. They use
// storage. Every change is announced to the other processes and recorded in the audit log by the caller.

import { OperationError } from '../../contract/errors/errors.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { isUuid } from '../../lib/ids.ts'
import {
  findOrganization,
  findOrganizationByDomain,
  insertOrganization,
  listOrganizations,
} from '../../storage/access/organizations.ts'
import type { OrganizationRow } from '../../storage/access/tables.ts'
import type { AdminHandler, Context } from '../context.ts'
import { makePage, readPage } from '../pages.ts'

/** Looks an organization up; a member finds its own only. */
export const GetOrganizationByDomain: AdminHandler<'GetOrganizationByDomain'> = async (
  context,
  request,
) => {
  // Looked up first and compared after: both cases take one statement and answer alike.
  const row = await findOrganizationByDomain(context.db, request.domain)
  if (!row || !maySee(context, row.organization_id))
    throw new OperationError('ORGANIZATION_NOT_FOUND')
  return { organization: presentOrganization(row) }
}

/** Creates an organization with a new domain. */
export const CreateOrganization: AdminHandler<'CreateOrganization'> = async (context, request) => {
  return await context.db.transaction().execute(async (db) => {
    const row = await insertOrganization(db, {
      organization_id: context.ids.uuid(),
      name: request.name,
      domain: request.domain,
      create_time: new Date(context.clock.now()),
    })
    if (!row) throw domainTaken()
    const answer = { organization: presentOrganization(row) }
    await context.record?.(db, answer)
    return answer
  })
}

/** Lists organizations in the order of their creation. */
export const ListOrganizations: AdminHandler<'ListOrganizations'> = async (context, request) => {
  const { limit, after } = readPage<[string, string]>(context, request)
  const rows = await listOrganizations(context.db, {
    limit: limit + 1,
    ...(after && { after: { create_time: new Date(after[0]), organization_id: after[1] } }),
  })
  const { items, pagination } = makePage(context, request, rows, (row) => [
    toTimestamp(row.create_time),
    row.organization_id,
  ])
  return { organizations: items.map(presentOrganization), pagination }
}

/**
 * The organization that a request names, for a caller that may see it. Another organization's id
 * answers as an id that does not exist.
 */
export async function getOrganization(
  context: Context,
  organization_id: string,
): Promise<OrganizationRow> {
  // An id that is not a UUID would be an error of the database, not an unknown organization.
  const row =
    isUuid(organization_id) && maySee(context, organization_id)
      ? await findOrganization(context.db, organization_id)
      : undefined
  if (!row) throw new OperationError('ORGANIZATION_NOT_FOUND')
  return row
}

/** The refusal of a domain that another organization has. */
export const domainTaken = () => {
  const detail = 'Another organization has this domain.'
  return new OperationError('DOMAIN_TAKEN', {
    errors: [{ field: 'domain', reason: 'DOMAIN_TAKEN', detail }],
  })
}

const maySee = ({ principal }: Context, organization_id: string): boolean =>
  principal.role === 'ROLE_ADMIN' || principal.organization_id === organization_id

/** An organization as answers show it. */
export const presentOrganization = (row: OrganizationRow) => ({
  organization_id: row.organization_id,
  name: row.name,
  domain: row.domain,
  disable_time: row.disable_time && toTimestamp(row.disable_time),
  create_time: toTimestamp(row.create_time),
  update_time: toTimestamp(row.update_time),
})
