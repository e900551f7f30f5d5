/** Why a delivery is refused. */
export type WebhookErrorReason =
  | 'MISSING_HEADER'
  | 'INVALID_TIMESTAMP'
  | 'TOO_OLD'
  | 'TOO_NEW'
  | 'SIGNATURE_MISMATCH'
  | 'INVALID_BODY'
  | 'INVALID_SECRET'

/**
 * A delivery that is not genuine, or cannot be checked.
 *
 * @example
 * if (error instanceof WebhookError && error.reason === 'TOO_OLD') …
 */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  readonly reason: WebhookErrorReason

  constructor(reason: WebhookErrorReason, message: string) {
    super(message)
    this.reason = reason
  }
}
