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

/** Milliseconds of a `Retry-After`, given as seconds or as a date. */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

/** Statuses by which servers refuse a batch as such: its calls are then made one by one. */
export const isBatchRefusal = (status: number): boolean =>
  (status >= 400 && status < 500 && ![401, 403, 404, 407, 408, 429].includes(status)) ||
  status === 501
