import type { Role } from '../../contract/roles.ts'
import { createNetworkList, type NetworkList } from '../../lib/net/ip.ts'
import type { CredentialRow } from '../../storage/access/tables.ts'

/** The caller: a credential, its organization and its rights. */
export type Principal = {
  credential_id: string
  organization_id: string
  role: Role
  /** Absent where the role alone decides. */
  restrictions?: Restrictions
}

/** What a credential may do less than its role. */
export type Restrictions = {
  /** Unix time in milliseconds from which on it opens nothing; Infinity for never. */
  expireAt: number
  /** Undefined for everything. */
  scopes: ReadonlySet<string> | undefined
  /** Undefined for everywhere. */
  clientNetworks: NetworkList | undefined
  /** The same as written. */
  allowed_client_networks: readonly string[] | undefined
}

/** The fields of a stored credential that define its principal. */
type Stored = Pick<
  CredentialRow,
  | 'credential_id'
  | 'organization_id'
  | 'role'
  | 'expire_time'
  | 'scopes'
  | 'allowed_client_networks'
>

/** The caller behind a credential; the only way from a row to a principal. */
export function principalFrom(row: Stored): Principal {
  const { credential_id, organization_id, role } = row
  const restrictions = restrictionsFrom(row)
  return { credential_id, organization_id, role, ...(restrictions && { restrictions }) }
}

function restrictionsFrom(row: Stored): Restrictions | undefined {
  const { expire_time, scopes, allowed_client_networks } = row
  if (!expire_time && !scopes && !allowed_client_networks) return undefined
  return {
    expireAt: expire_time?.getTime() ?? Number.POSITIVE_INFINITY,
    scopes: scopes ? new Set(scopes) : undefined,
    clientNetworks: allowed_client_networks
      ? createNetworkList(allowed_client_networks)
      : undefined,
    allowed_client_networks: allowed_client_networks ?? undefined,
  }
}
