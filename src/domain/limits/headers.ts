import type { Decision } from './decision.ts'

// The largest integer that a structured field can hold (RFC 9651, 3.3.1).
const LARGEST = 999_999_999_999_999

const integer = (value: number): number => Math.min(LARGEST, value)

const wholeSeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000))

/** Whole seconds to wait after a refusal, at least one. */
export const retryAfterSeconds = (decision: Decision): number =>
  wholeSeconds(decision.retry_after_ms)

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-10, for successes and refusals alike;
 * `RateLimit` tells of the decisive window only, and unlimited windows are left out.
 */
export const rateLimitHeaders = (decision: Decision): Record<string, string> => {
  const headers: Record<string, string> = {}
  let policy = ''
  for (const { window, limit, remaining, reset_ms, seconds } of decision.windows) {
    policy += `${policy === '' ? '' : ', '}"${window}";q=${integer(limit)};w=${seconds}`
    if (window === decision.window)
      headers.RateLimit = `"${window}";r=${integer(remaining)};t=${wholeSeconds(reset_ms)}`
  }
  if (policy !== '') headers['RateLimit-Policy'] = policy
  if (!decision.allowed) headers['Retry-After'] = String(retryAfterSeconds(decision))
  return headers
}
