import type { ErrorRow } from './row.ts'

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
