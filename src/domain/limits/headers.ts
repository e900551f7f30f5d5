import type { Decision } from './decision.ts'

// The largest integer that a structured field can hold (RFC 9651, 3.3.1).
const LARGEST = 999_999_999_999_999

const integer = (value: number): number => Math.min(LARGEST, value)

const wholeSeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000))

/** Whole seconds to wait after a refusal, at least one. */
export const retryAfterSeconds = (decision: Decision): number =>
  wholeSeconds(decision.retry_after_ms)

/** Whether a limit of 0 refuses every call: then no wait helps. */
export const isBlocked = ({ allowed, windows }: Decision): boolean =>
  !allowed && windows.some(({ limit }) => limit === 0)

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-10, for successes and refusals alike;
 * `RateLimit` has the decisive window only, and unlimited windows are omitted.
 */
export const rateLimitHeaders = (decision: Decision): Record<string, string> => {
  const headers: Record<string, string> = {}
  const list = listOf(decision, policyOf)
  for (let at = 0; at < list.length; at += 2) headers[list[at] as string] = list[at + 1] as string
  return headers
}

/** Makes the same as names and values in turn; the policy of one caller after the other is rarely new. */
export function createRateLimitList(): (decision: Decision) => string[] {
  let last: Decision['windows'] = []
  let policy = ''
  const remembered = (windows: Decision['windows']): string => {
    if (!isSamePolicy(windows, last)) policy = policyOf(windows)
    last = windows
    return policy
  }
  return (decision) => listOf(decision, remembered)
}

function listOf(decision: Decision, toPolicy: (windows: Decision['windows']) => string): string[] {
  const { windows, window, allowed } = decision
  const headers: string[] = []
  for (const one of windows)
    if (one.window === window) {
      const { remaining, reset_ms } = one
      headers.push('RateLimit', `"${window}";r=${integer(remaining)};t=${wholeSeconds(reset_ms)}`)
    }
  if (windows.length > 0) headers.push('RateLimit-Policy', toPolicy(windows))
  if (!allowed && !isBlocked(decision))
    headers.push('Retry-After', String(retryAfterSeconds(decision)))
  return headers
}

function isSamePolicy(windows: Decision['windows'], others: Decision['windows']): boolean {
  if (windows.length !== others.length) return false
  for (let index = 0; index < windows.length; index++) {
    const [one, other] = [windows[index], others[index]]
    if (one?.window !== other?.window || one?.limit !== other?.limit) return false
    if (one?.seconds !== other?.seconds) return false
  }
  return true
}

const policyOf = (windows: Decision['windows']): string =>
  windows
    .map(({ window, limit, seconds }) => `"${window}";q=${integer(limit)};w=${seconds}`)
    .join(', ')
