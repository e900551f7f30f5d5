import { createNetworkList } from '../../lib/net/ip.ts'
import type { CredentialRow } from '../../storage/access/tables.ts'
import type { Principal, Restrictions } from '../context.ts'

/** What of a stored credential decides who its caller is and what it may do. */
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
