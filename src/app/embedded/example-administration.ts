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
  /** A pair to delete. Its secret is in the API reference of this machine, so no client can sign with it. */
  deleted_pair: { credential_id: string; api_key: string; api_secret: string }
}

/** How long the pair to delete is valid. It can be deleted later too. */
const pairLifeMs = 3_600_000

/** Creates them, or finds those of an earlier start. With `before`, only what examples have used up is created again. */
export async function ensureAdministration(
  { admin }: Client,
  before?: SpareAdministration,
): Promise<SpareAdministration> {
  const ensureOrganization = async (domain: string) => {
    const { organization } = await orIfMissing(admin.GetOrganizationByDomain({ domain }), () =>
      admin.CreateOrganization({ name: 'Example', domain }),
    )
    return organization.organization_id
  }
  const limited_organization_id = await ensureOrganization('example-limits')
  // GetRateLimit reads the one, DeleteRateLimit removes the other.
  const { data } = await admin.ListRateLimits({ organization_id: limited_organization_id })
  const missing = ['admin', '*'].filter(
    (chain) => !data.some((limit) => limit.ratelimit_info.chain === chain),
  )
  for (const chain of missing)
    await admin.SetRateLimit({ organization_id: limited_organization_id, chain, ...limits })

  const credentials = await listCredentials(admin, limited_organization_id)
  const ensureCredential = async (name: string) => {
    const known = credentials.find((one) => one.name === name && !one.successor_credential_id)
    if (known) return known.credential_id
    const { credential } = await admin.CreateCredential({
      ...{ organization_id: limited_organization_id, role: 'ROLE_READER', name },
    })
    return credential.credential_id
  }
  const ensurePair = async () => {
    const name = 'Example to delete'
    const known = credentials.filter((one) => one.name === name)
    const last = before?.deleted_pair
    if (last && known.some(({ credential_id }) => credential_id === last.credential_id)) return last
    // A secret is shown once: the secrets of an earlier start are not known.
    for (const { credential_id } of known) await admin.RevokeCredential({ credential_id })
    const { credential } = await admin.CreateCredential({
      ...{ organization_id: limited_organization_id, role: 'ROLE_READER', name },
      // The network is reserved for documentation: no client has such an address.
      ...{ scopes: ['c:read'], allowed_client_networks: ['192.0.2.0/32'] },
      expire_time: new Date(Date.now() + pairLifeMs).toISOString(),
    })
    const { credential_id, api_key, api_secret } = credential
    return { credential_id, api_key, api_secret }
  }
  const deleted = { domain: 'example-deleted' }
  return {
    limited_organization_id,
    disabled_organization_id: await ensureOrganization('example-disabled'),
    deleted: { ...deleted, organization_id: await ensureOrganization(deleted.domain) },
    erased_organization_id: before?.erased_organization_id ?? (await ensureErased(admin)),
    credential_ids: {
      update: await ensureCredential('Example to update'),
      rotate: await ensureCredential('Example to rotate'),
      revoke: await ensureCredential('Example to revoke'),
    },
    deleted_pair: await ensurePair(),
  }
}

/** All credentials of an organization: replaced ones stay listed, so there may be many. */
async function listCredentials(admin: Client['admin'], organization_id: string) {
  const found: Awaited<ReturnType<typeof admin.ListCredentials>>['credentials'][number][] = []
  for (let page_token = ''; ; ) {
    const { credentials, pagination } = await admin.ListCredentials({
      ...{ organization_id, page_size: 100, ...(page_token && { page_token }) },
    })
    found.push(...credentials)
    page_token = pagination.next_page_token
    if (page_token === '') return found
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
