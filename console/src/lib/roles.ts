/** The roles, from the widest to the narrowest. */
const roles = ['ROLE_ADMIN', 'ROLE_OWNER', 'ROLE_MEMBER', 'ROLE_READER'] as const

/** What a credential may do. */
export type Role = (typeof roles)[number]

const adminOnly: ReadonlySet<string> = new Set([
  'CreateOrganization',
  'DeleteOrganization',
  'DeleteRateLimit',
  'DisableOrganization',
  'EnableOrganization',
  'GetOrganizationDeletion',
  'ListMetrics',
  'ListNodes',
  'ListOrganizations',
  'ListProblems',
  'RenameOrganization',
  'SetQuota',
  'SetRateLimit',
])
const ownerOnly: ReadonlySet<string> = new Set([
  'CreateCredential',
  'ListCredentials',
  'RevokeCredential',
  'UpdateCredential',
])
// They only read, and show a secret.
const showing: ReadonlySet<string> = new Set(['GetWebhookSigningSecret', 'ListWebhookHeaders'])

/** The narrowest role that may call an operation. A test compares it with the catalogue of the service. */
export function roleFor(operation: string): Role {
  if (adminOnly.has(operation)) return 'ROLE_ADMIN'
  if (ownerOnly.has(operation)) return 'ROLE_OWNER'
  return isRead(operation) || operation === 'CreateStreamToken' ? 'ROLE_READER' : 'ROLE_MEMBER'
}

const isRead = (operation: string): boolean =>
  /^(?:Get|List)/.test(operation) && !showing.has(operation)

/** Whether the scopes of a key cover an operation of a chain, or of the administration. */
export function coversOperation(
  scopes: readonly string[],
  operation: string,
  on: { chain: string } = { chain: 'admin' },
): boolean {
  const access = isRead(operation) ? ['read', 'write'] : ['write']
  return (
    scopes.includes('*') ||
    access.some((one) => scopes.includes(`${on.chain}:${one}`) || scopes.includes(`*:${one}`))
  )
}

/** Whether a role includes another one. */
export const includesRole = (held: Role, wanted: Role): boolean =>
  roles.indexOf(held) <= roles.indexOf(wanted)

/** Whether a role may call an operation. */
export const mayCall = (role: Role, operation: string): boolean =>
  includesRole(role, roleFor(operation))
