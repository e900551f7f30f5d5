// The error table. It may use `contract` only. One row per reason: status, title, whether a retry helps, and
// the JSON-RPC code of the gateway. HTTP problems, gateway errors, `docs/errors.md` and the client derive from
// it; a reason never changes its meaning once released.

import { idempotencyErrors } from '../idempotency.ts'
import { accessErrors, limitErrors } from './access.ts'
import { gatewayErrors } from './gateway.ts'
import { organizationErrors } from './organization.ts'
import { requestErrors } from './request.ts'
import type { ErrorRow } from './row.ts'
import { serviceErrors } from './service.ts'
import { transactionErrors } from './transaction.ts'
import { queryErrors, walletErrors } from './wallet.ts'
import { eventErrors, webhookErrors } from './webhook.ts'

/** Every failure that a caller can see. HTTP, gateway, docs and SDK derive from this table only. */
export const errors = {
  ...requestErrors,
  ...accessErrors,
  ...organizationErrors,
  ...walletErrors,
  ...queryErrors,
  ...transactionErrors,
  ...webhookErrors,
  ...eventErrors,
  ...idempotencyErrors,
  ...gatewayErrors,
  ...limitErrors,
  ...serviceErrors,
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
