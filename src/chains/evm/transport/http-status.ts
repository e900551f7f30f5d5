import { parseRetryAfter } from '../../nodes/fault.ts'
import type { TransportFailure } from './transport.ts'

/** What an HTTP status other than 200 says about the call; undefined when the body may still answer it. */
export function failureOfStatus(
  status: number,
  retryAfter: string | undefined,
  now: number,
): TransportFailure | undefined {
  if (status >= 200 && status < 300) return undefined
  const retryAfterMs = parseRetryAfter(retryAfter, now)
  if (status === 429 || (status === 503 && retryAfterMs !== undefined))
    return {
      failed: 'rate_limited',
      detail: `HTTP ${status}`,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    }
  return { failed: 'http_status', detail: `HTTP ${status}` }
}

/** Statuses by which servers refuse a batch as such: its calls are then made one by one. */
export const isBatchRefusal = (status: number): boolean =>
  (status >= 400 && status < 500 && ![401, 403, 404, 407, 408, 429].includes(status)) ||
  status === 501
