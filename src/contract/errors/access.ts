import type { ErrorRow } from './errors.ts'

/** What a credential is refused for beyond its signature and its role; part of the one table of errors. */
export const accessErrors = {
  CREDENTIAL_EXPIRED: {
    status: 401,
    code: 'UNAUTHENTICATED',
    rpc: -32600,
    retry: 'never',
    title: 'The credential has expired',
    help: 'Use its successor, or ask an owner of the organization for a new one. Only a request with a valid signature, or the key itself at the gateway, gets this answer.',
  },
  SCOPE_MISSING: {
    status: 403,
    code: 'PERMISSION_DENIED',
    rpc: -32600,
    retry: 'never',
    title: 'The credential is not meant for this',
    help: 'The credential lacks the scope in `missing`. An owner of the organization changes scopes with UpdateCredential, or creates another credential.',
  },
  CLIENT_NETWORK_NOT_ALLOWED: {
    status: 403,
    code: 'PERMISSION_DENIED',
    rpc: -32600,
    retry: 'never',
    title: 'The credential may not be used from this address',
    help: 'The client address in `missing` is in none of the `allowed_client_networks` of the credential. Behind a proxy, `server.trust_proxy` decides which address counts.',
  },
  GRANT_EXCEEDED: {
    status: 403,
    code: 'PERMISSION_DENIED',
    rpc: -32600,
    retry: 'never',
    title: 'A credential cannot be given more than its giver has',
    help: 'Request at most the role, scopes, client networks and lifetime of the credential that you use; `errors` names every field that exceeds them.',
  },
  CREDENTIAL_ROTATED: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The credential has been rotated already',
    help: 'Its successor has been used, or was made within the last minute. Rotate the successor, or revoke it first.',
  },
  TOO_MANY_CREDENTIALS: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The organization has too many credentials',
    help: 'An organization has at most 1000. Revoke those that are not used any more.',
  },
} as const satisfies Record<string, ErrorRow>
