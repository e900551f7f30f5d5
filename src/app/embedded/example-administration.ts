import { type Client, PortolanError } from '../../../client/src/index.ts'

/** Limits of an organization that makes no calls. */
export const limits = {
  per_second_limit: 100,
  per_hour_limit: 100_000,
  per_day_limit: 1_000_000,
  per_month_limit: 20_000_000,
}

/** Organizations and credentials that nothing uses, so that each example can change one of its own. */
export type SpareAdministration = {
  /** It has rate limits of its own, and those of the demo stay as configured. */
  limited_organization_id: string
  disabled_organization_id: string
  deleted: { organization_id: string; domain: string }
  /** It is deleted already. */
  erased_organization_id: string
  /** Credentials by what is done to them. */
  credential_ids: Record<'update' | 'rotate' | 'revoke', string>
}

/** Makes them, or finds those of an earlier start. */
export async function ensureAdministration({ admin }: Client): Promise<SpareAdministration> {
  const ensureOrganization = async (domain: string) => {
    const { organization } = await orIfMissing(admin.GetOrganizationByDomain({ domain }), () =>
      admin.CreateOrganization({ name: 'Example', domain }),
    )
    return organization.organization_id
  }
  const limited_organization_id = await ensureOrganization('example-limits')
  // GetRateLimit reads the one, DeleteRateLimit removes the other.
  for (const chain of ['admin', '*'])
    await admin.SetRateLimit({ organization_id: limited_organization_id, chain, ...limits })

  const { credentials } = await admin.ListCredentials({
    ...{ organization_id: limited_organization_id, page_size: 100 },
  })
  const ensureCredential = async (name: string) => {
    const known = credentials.find((one) => one.name === name && !one.successor_credential_id)
    if (known) return known.credential_id
    const { credential } = await admin.CreateCredential({
      ...{ organization_id: limited_organization_id, role: 'ROLE_READER', name },
    })
    return credential.credential_id
  }
  const deleted = { domain: 'example-deleted' }
  return {
    limited_organization_id,
    disabled_organization_id: await ensureOrganization('example-disabled'),
    deleted: { ...deleted, organization_id: await ensureOrganization(deleted.domain) },
    erased_organization_id: await ensureErased(admin),
    credential_ids: {
      update: await ensureCredential('Example to update'),
      rotate: await ensureCredential('Example to rotate'),
      revoke: await ensureCredential('Example to revoke'),
    },
  }
}

/** An organization that is deleted; the audit log names those of earlier starts. */
async function ensureErased(admin: Client['admin']): Promise<string> {
  const { audit_events } = await admin.ListAuditEvents({
    ...{ operation: 'DeleteOrganization', result: 'AUDIT_RESULT_SUCCEEDED', page_size: 1 },
  })
  const known = audit_events[0]?.organization_id
  if (known) return known
  const domain = 'example-erased'
  const { organization } = await orIfMissing(admin.GetOrganizationByDomain({ domain }), () =>
    admin.CreateOrganization({ name: 'Example', domain }),
  )
  const { organization_id } = organization
  await admin.DeleteOrganization({ organization_id, domain })
  return organization_id
}

/** What is found, or else made. */
export async function orIfMissing<T>(found: Promise<T>, make: () => Promise<T>): Promise<T> {
  try {
    return await found
  } catch (error) {
    if (error instanceof PortolanError && error.status === 404) return await make()
    throw error
  }
}
