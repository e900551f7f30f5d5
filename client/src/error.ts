import type { FieldError, Reason } from './contract.ts'

/** Failures that the client itself notices: no answer, none in time, or none of the service. */
type LocalReason = 'NETWORK_FAILED' | 'TIMED_OUT' | 'UNEXPECTED_ANSWER'

// A newer server may know more reasons; the open part keeps the known ones in the completion list.
type Open = string & Record<never, never>

/** What a {@link PortolanError} holds; the names are those of the problem body. */
export type ErrorFields = {
  status: number
  code: string
  reason: Reason | LocalReason | Open
  detail: string
  request_id?: string | undefined
  errors?: readonly FieldError[]
  retry_after?: number | undefined
  cause?: unknown
}

/**
 * Every failure of a call, whether the service answered or not.
 *
 * @example
 * try {
 *   await client.c.GetWallet({ wallet_id })
 * } catch (error) {
 *   if (error instanceof PortolanError && error.code === 'NOT_FOUND') return undefined
 *   throw error
 * }
 */
export class PortolanError extends Error {
  override readonly name = 'PortolanError'
  /** HTTP status; 0 when no answer arrived. */
  readonly status: number
  /** Canonical code such as NOT_FOUND, UNAVAILABLE or DEADLINE_EXCEEDED. */
  readonly code: string
  /** What exactly went wrong, such as WALLET_NOT_FOUND. */
  readonly reason: ErrorFields['reason']
  /** One sentence for people. */
  readonly detail: string
  /** Finds the request in the log of the service; undefined when the service did not answer. */
  readonly request_id: string | undefined
  /** Every bad field of the request. */
  readonly errors: readonly FieldError[]
  /** Seconds after which a retry can help; undefined when the answer did not say. */
  readonly retry_after: number | undefined

  constructor(fields: ErrorFields) {
    super(messageOf(fields), { cause: fields.cause })
    this.status = fields.status
    this.code = fields.code
    this.reason = fields.reason
    this.detail = fields.detail
    this.request_id = fields.request_id
    this.errors = fields.errors ?? []
    this.retry_after = fields.retry_after
  }
}

function messageOf({ reason, detail, errors = [], request_id }: ErrorFields): string {
  const fields = errors.map((error) => `\n  ${error.field}: ${error.detail}`).join('')
  return `${reason}: ${detail}${request_id ? ` (request ${request_id})` : ''}${fields}`
}
