// Refusals before an operation is called. An unknown key and a wrong signature give the same answer: what else is wrong
// with a credential (expired, disabled, not meant for this) is said only to a caller that has proved to hold it.

import { maxCredentials } from '../limits.ts'
import type { ErrorRow } from './row.ts'

/** Refusals of a credential; part of the one table of errors. */
export const accessErrors = {
  UNAUTHENTICATED: {
    status: 401,
    code: 'UNAUTHENTICATED',
    rpc: -32600,
    retry: 'never',
    title: 'The request is not signed by a valid credential',
    help: 'Send `x-api-key`, `x-api-nonce` and `x-api-signature`. The signature is the lower-case hex HMAC-SHA256, keyed with the api_secret, of nonce + METHOD + path + body. An unknown key and a wrong signature give this same answer.',
  },
  NONCE_REUSED: {
    status: 401,
    code: 'UNAUTHENTICATED',
    rpc: -32600,
    retry: 'never',
    title: 'The nonce was used before',
    help: 'Use a new nonce for every request. Milliseconds can collide when a key is used in parallel: use microseconds (16 digits) or nanoseconds (19 digits).',
  },
  CLOCK_SKEW: {
    status: 401,
    code: 'UNAUTHENTICATED',
    rpc: -32600,
    retry: 'never',
    title: 'The nonce is too far from the time of the server',
    help: 'The nonce is the current Unix time in milliseconds, microseconds or nanoseconds, within 5 minutes of the server. The answer contains the time of the server.',
  },
  PERMISSION_DENIED: {
    status: 403,
    code: 'PERMISSION_DENIED',
    rpc: -32600,
    retry: 'never',
    title: 'The credential may not do this',
    help: 'The operation needs a credential with the role that the answer names as `missing`: ROLE_READER reads, ROLE_MEMBER also writes, ROLE_OWNER administers the credentials of its organization, ROLE_ADMIN the installation.',
  },
  HOST_NOT_ALLOWED: {
    status: 403,
    code: 'PERMISSION_DENIED',
    rpc: -32600,
    retry: 'never',
    title: 'The request names another host',
    help: 'This address answers only requests whose `Host`, and `Origin` where there is one, is a loopback name, the address that the connection was made to, or a host of `server.host`, `server.base_url` or `server.admin_listen`. This blocks requests from other sites.',
  },
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
    help: `An organization has at most ${maxCredentials}. Revoke those that are not used any more.`,
  },
} as const satisfies Record<string, ErrorRow>

/** Refusals because of a limit on the caller or the service; part of the one table of errors. */
export const limitErrors = {
  RATE_LIMITED: {
    status: 429,
    code: 'RESOURCE_EXHAUSTED',
    rpc: -32005,
    retry: 'after',
    title: 'The rate limit is used up',
    help: 'Wait for the time in `Retry-After`. `RateLimit-Policy` lists the limits of the organization on this chain, `RateLimit` the one that is nearest.',
  },
  RATE_LIMIT_BLOCKED: {
    status: 403,
    code: 'PERMISSION_DENIED',
    rpc: -32005,
    retry: 'never',
    title: 'The organization is blocked on this chain',
    help: 'A limit of the organization on this chain is 0, which admits no call at all: waiting does not help. `ListEffectiveRateLimits` shows the record; the operator changes it with SetRateLimit or `portolan limits set`.',
  },
  TOO_MANY_FAILURES: {
    status: 429,
    code: 'RESOURCE_EXHAUSTED',
    rpc: -32005,
    retry: 'after',
    title: 'Too many wrong credentials came from this address',
    help: 'Correct the key or the secret, then wait for the time in `Retry-After`. Recently used credentials are still served. If others share the address, the operator sets `server.trust_proxy`, so that each client behind the proxy is counted alone.',
  },
  TOO_MANY_CONNECTIONS: {
    status: 429,
    code: 'RESOURCE_EXHAUSTED',
    rpc: -32005,
    retry: 'after',
    title: 'Too many connections are open from this address',
    help: 'Reuse connections, and close those that are not needed. The limit is `server.connections_per_address`.',
  },
  TOO_MUCH_IN_FLIGHT: {
    status: 429,
    code: 'RESOURCE_EXHAUSTED',
    rpc: -32005,
    retry: 'after',
    title: 'Too many bytes of requests are in flight from this address',
    help: 'Send fewer large requests at the same time, and send each one without delay. The limit is `server.body_bytes_per_address`.',
  },
  OVERLOADED: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'The service is overloaded',
    help: 'Retry after the time in `Retry-After`. The limits are `server.connections_limit` and `server.body_bytes_limit`.',
  },
} as const satisfies Record<string, ErrorRow>
