import { errors, OperationError } from '../contract/errors/errors.ts'
import type { Log } from '../lib/log.ts'
import type { Outage } from '../lib/outage.ts'
import { isDatabaseUnavailable, isDiskFull } from '../storage/pg/errors.ts'

/** A failure, ready to be sent. */
export type ProblemResponse = { status: number; headers: Record<string, string>; body: string }

/** How an operation is authenticated (RFC 9110, 11.6.1). */
const signatureChallenge = 'HMAC-SHA256 realm="operations"'
/** How a call of the gateway is. */
export const keyChallenge = 'ApiKey realm="gateway", Bearer realm="gateway"'

/** Whether an answer of this status must say when to retry. */
export const isTemporary = (status: number): boolean => status === 503 || status === 429

/** The answer for an error; internal details go to the log under the request id. */
export function toOperationError(
  error: unknown,
  log: Log,
  request: { request_id: string; client: string; trace_id?: string | undefined },
  /** Where it is known whether the database was reachable before, an outage is one line. */
  database?: Pick<Outage, 'failed'>,
): OperationError {
  if (error instanceof OperationError) return error
  const { request_id, client, trace_id } = request
  const known = { request_id, client, ...(trace_id !== undefined && { trace_id }) }
  if (isDiskFull(error)) {
    log.error({ err: error, ...known }, 'the disk of the database is full')
    const detail = 'The disk of the database is full: nothing was changed.'
    return new OperationError('DATABASE_UNAVAILABLE', { detail, retryAfter: 10, cause: error })
  }
  if (isDatabaseUnavailable(error)) {
    if (database) database.failed(error, known)
    else log.warn({ err: error, ...known }, 'database unavailable')
    return new OperationError('DATABASE_UNAVAILABLE', { retryAfter: 1, cause: error })
  }
  log.error({ err: error, ...known }, 'request failed')
  return new OperationError('INTERNAL', { cause: error })
}

/** The body of RFC 9457 with the members of docs/decisions/http.md. */
export function problemResponse(
  error: OperationError,
  request_id: string,
  /** Where the request is traced. */
  trace_id?: string,
): ProblemResponse {
  const { status, code, title } = errors[error.reason]
  const body = JSON.stringify({
    type: `/docs/errors/${error.reason}`,
    title,
    status,
    detail: error.message,
    code,
    reason: error.reason,
    request_id,
    ...(trace_id !== undefined && { trace_id }),
    ...error.extra,
    ...(error.errors.length > 0 && { errors: error.errors }),
  })
  return {
    status,
    headers: {
      ...error.headers,
      ...retryHeader(error, status),
      ...(status === 401 && { 'www-authenticate': signatureChallenge }),
      'content-type': 'application/problem+json',
    },
    body,
  }
}

function retryHeader(error: OperationError, status: number): Record<string, string> {
  if (error.retryAfter !== undefined) return { 'retry-after': String(error.retryAfter) }
  const isPresent = 'retry-after' in error.headers || 'Retry-After' in error.headers
  return isTemporary(status) && !isPresent ? { 'retry-after': '1' } : {}
}
