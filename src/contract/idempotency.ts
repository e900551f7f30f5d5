import type { ErrorRow } from './errors/row.ts'
import { maxIdempotencyKeys } from './limits.ts'

/** The header that makes the repetition of a creating request harmless. */
export const idempotencyHeader = 'idempotency-key'

/** Says that an answer is that of an earlier request with the same key. */
export const replayedHeader = 'idempotency-replayed'

/** Any visible ASCII characters and spaces; a UUID is a good choice. */
export const idempotencyKeyPattern = /^[\x20-\x7e]{1,255}$/

/** How long an answer is kept. */
export const idempotencyHours = 24

/** Failures of requests with an idempotency key. */
export const idempotencyErrors = {
  IDEMPOTENCY_KEY_REUSED: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32600,
    retry: 'never',
    title: 'The idempotency key was used for another request',
    help: `Within ${idempotencyHours} hours a key of a credential belongs to one operation and one body, byte by byte. Send the same body again, or take a new key for a new request.`,
  },
  IDEMPOTENCY_KEY_IN_USE: {
    status: 409,
    code: 'ABORTED',
    rpc: -32600,
    retry: 'later',
    title: 'A request with this idempotency key is under way',
    help: 'Send the same request again after the time in `retry-after`. It then gets the answer of the first one, or is carried out if the first one failed.',
  },
  TOO_MANY_IDEMPOTENCY_KEYS: {
    status: 429,
    code: 'RESOURCE_EXHAUSTED',
    rpc: -32005,
    retry: 'after',
    title: 'The organization has too many idempotency keys',
    help: `An organization can have ${maxIdempotencyKeys.toLocaleString('en')} keys within ${idempotencyHours} hours. Send the request without a key, or later.`,
  },
} as const satisfies Record<string, ErrorRow>
