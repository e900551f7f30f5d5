import { idempotencyErrors } from '../idempotency.ts'
import { accessErrors } from './access.ts'
import { gatewayErrors } from './gateway.ts'
import { transactionErrors } from './transaction.ts'
import { webhookErrors } from './webhook.ts'

/** Whether a retry can help: never, later, or after the time that the answer names. */
export type Retry = 'never' | 'later' | 'after'

/** What the table says of one reason. */
export type ErrorRow = {
  status: number
  /** Canonical code of Google AIP-193. */
  code: string
  /** The JSON-RPC code where the gateway refuses for the same reason. */
  rpc: number
  retry: Retry
  title: string
  /** What the caller can do about it; shown in the docs. */
  help: string
}

/** Every failure that a caller can see. HTTP, gateway, docs and SDK derive from this table only. */
export const errors = {
  INVALID_REQUEST: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32602,
    retry: 'never',
    title: 'The request is not valid',
    help: 'Fix the fields listed in `errors`. Field reasons: REQUIRED, AT_LEAST_ONE_REQUIRED, UNKNOWN_FIELD, INVALID_TYPE, INVALID_FORMAT, NOT_ALLOWED, TOO_SHORT, TOO_LONG, TOO_FEW, TOO_MANY, OUT_OF_RANGE, INVALID_ADDRESS, INVALID_TOKEN, INVALID_CONTRACT, INVALID_ENDPOINT, INVALID_HEADER, INVALID_SIGNATURE, WOULD_FAIL.',
  },
  MALFORMED_REQUEST: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The request is not valid HTTP',
    help: 'The request is not HTTP/1.1, or a proxy corrupted it.',
  },
  INVALID_JSON: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32700,
    retry: 'never',
    title: 'The body is not valid JSON',
    help: 'Send one JSON object in UTF-8, without duplicate keys, NUL characters, lone surrogates or more than 16 levels. An empty body counts as `{}`.',
  },
  INVALID_PAGE_TOKEN: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32602,
    retry: 'never',
    title: 'The page token does not belong to this list',
    help: 'Use `next_page_token` of the previous page unchanged, with the same operation and filters. Otherwise start without a token.',
  },
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
  ...accessErrors,
  ROUTE_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32601,
    retry: 'never',
    title: 'There is nothing at this address',
    help: 'Operations are at `POST /v1/{service}/{Operation}`. The service is admin, q, t, s, p or c; names are case-sensitive.',
  },
  ORGANIZATION_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Organization not found',
    help: 'No such organization, or it is not the one of the credential.',
  },
  CREDENTIAL_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Credential not found',
    help: 'The credential does not exist, belongs to another organization, or the secret is wrong.',
  },
  RATE_LIMIT_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Rate limit not found',
    help: 'The organization has no record of its own for this chain; the record `*` or the configured defaults apply.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The address does not accept this HTTP method',
    help: 'Use the method that the `Allow` header names. Operations are always POST.',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    code: 'DEADLINE_EXCEEDED',
    rpc: -32600,
    retry: 'later',
    title: 'The request did not arrive in time',
    help: 'Send the whole request within the time limit (`server.request_timeout_seconds`).',
  },
  WALLET_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Wallet not found',
    help: 'Use ListWallets. A wallet of another organization or service gives the same answer.',
  },
  ADDRESS_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'The address is not registered',
    help: 'Register it with RegisterAddress first. The transfers of a removed address stay readable by `wallet_id`.',
  },
  BLOCK_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Block not found',
    help: 'The block does not exist yet, or the nodes have pruned it.',
  },
  TRANSACTION_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Transaction not found',
    help: 'The transaction does not exist. Managed transactions: use ListTransactions; only transactions created by the service are managed. Query chain: it is in no block; it may be pending (GetPendingTransaction), or its block was reorganized.',
  },
  PENDING_TRANSACTION_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Pending transaction not found',
    help: 'No node announced it while it was pending, or it left the pool more than 24 hours ago. Use GetTransaction for a transaction in a block.',
  },
  ...transactionErrors,
  ...webhookErrors,
  ...idempotencyErrors,
  ...gatewayErrors,
  ADDRESS_IN_OTHER_WALLET: {
    status: 409,
    code: 'ALREADY_EXISTS',
    rpc: -32602,
    retry: 'never',
    title: 'Another wallet of the organization has this address',
    help: 'An address belongs to one wallet. Find it with GetWallet and the address, and remove it there first. In a batch, `errors` names every such address, and nothing was changed.',
  },
  OWN_ORGANIZATION: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'It is the organization of the credential',
    help: 'Call with a credential of another organization, or use the command line: this credential could not undo the change.',
  },
  ORGANIZATION_DELETED: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The organization is being deleted',
    help: 'A deletion cannot be undone. GetOrganizationDeletion shows its progress.',
  },
  DOMAIN_TAKEN: {
    status: 409,
    code: 'ALREADY_EXISTS',
    rpc: -32602,
    retry: 'never',
    title: 'Another organization has this domain',
    help: 'Choose another domain, or find the organization with GetOrganizationByDomain.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The body is too large',
    help: 'Send less at once. The limit is `server.body_limit_bytes`, 1 MiB as shipped.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The content type is not application/json',
    help: 'Send `Content-Type: application/json`, in UTF-8 and without a content encoding.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The request headers are too large',
    help: 'Send at most 16 KiB of headers.',
  },
  QUOTA_EXCEEDED: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The organization has as many as its quota allows',
    help: 'The answer has `quota_name`, `quota_limit` and `used`; GetUsage shows all quotas. Remove unused objects, or ask an administrator for a higher quota (SetQuota).',
  },
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
  INTERNAL: {
    status: 500,
    code: 'INTERNAL',
    rpc: -32603,
    retry: 'later',
    title: 'The service failed',
    help: 'An internal error. The operator finds it in the log by the `request_id`.',
  },
  NOT_IMPLEMENTED: {
    status: 501,
    code: 'UNIMPLEMENTED',
    rpc: -32601,
    retry: 'never',
    title: 'This version does not have the operation yet',
    help: '`/openapi.json` lists the available operations.',
  },
  DATABASE_UNAVAILABLE: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'The database is unreachable',
    help: 'Retry after the time in `Retry-After`. Nothing was changed, unless the answer was lost on the way: reading first is safe.',
  },
  CHAIN_NOT_CONFIGURED: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'The chain of this service is not configured here',
    help: 'The operator has to add it under `chains` of the configuration. Until then nothing new can be registered or read from the chain; what is stored can be read and removed.',
  },
  UPSTREAM_UNAVAILABLE: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'No node of the network can answer now',
    help: 'Retry after the time in `Retry-After`. The operator sees the state of every node in `portolan chains`.',
  },
  TRACES_UNAVAILABLE: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'No node of the network can trace this transaction',
    help: 'The operator has to add a node that offers `debug_traceTransaction` with `callTracer`, or `trace_transaction`, and that has the state of the block; `portolan chains` shows what each node can do. An empty list is never answered with this error.',
  },
  UPSTREAM_TIMEOUT: {
    status: 504,
    code: 'DEADLINE_EXCEEDED',
    rpc: -32002,
    retry: 'later',
    title: 'No node of the network answered in time',
    help: 'Request less, or retry later. A transaction may have been accepted: look it up by its hash before you send another one.',
  },
  OPERATION_TIMEOUT: {
    status: 504,
    code: 'DEADLINE_EXCEEDED',
    rpc: -32002,
    retry: 'later',
    title: 'The operation took too long',
    help: 'The database or a node answers slowly. The change may or may not have been made: read first, then retry.',
  },
  SHUTTING_DOWN: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'The service is stopping',
    help: 'Retry; another process or the next start will answer.',
  },
} as const satisfies Record<string, ErrorRow>

/** A reason of the table. */
export type Reason = keyof typeof errors

/** One bad field of a request. */
export type FieldError = { field: string; reason: string; detail: string }

type Details = {
  detail?: string
  errors?: readonly FieldError[]
  /** Response headers that belong to the failure, such as `allow`. */
  headers?: Readonly<Record<string, string>>
  /** Further members of the problem body. */
  extra?: Readonly<Record<string, string>>
  /** Seconds after which a retry can help. */
  retryAfter?: number
  cause?: unknown
}

/** A failure that the caller may see. Anything else that is thrown becomes INTERNAL. */
export class OperationError extends Error {
  override readonly name = 'OperationError'
  readonly reason: Reason
  readonly errors: readonly FieldError[]
  readonly headers: Readonly<Record<string, string>>
  readonly extra: Readonly<Record<string, string>>
  readonly retryAfter: number | undefined

  constructor(reason: Reason, details: Details = {}) {
    super(details.detail ?? `${errors[reason].title}.`, { cause: details.cause })
    this.reason = reason
    this.errors = details.errors ?? []
    this.headers = details.headers ?? {}
    this.extra = details.extra ?? {}
    this.retryAfter = details.retryAfter
  }
}
