// The outcome of a rate-limit check, and how it is shown in headers. The local and the shared windows describe their
// outcomes here; `sliced-limiter.ts` derives its own from the windows that the owner reported.

import type { Entry } from './entries.ts'
import type { WindowName } from './windows.ts'

/** The limits of one organization on one chain: -1 is unlimited, 0 is blocked. */
export type RateLimits = {
  per_second_limit: number
  per_hour_limit: number
  per_day_limit: number
  per_month_limit: number
}

/** A stored rate-limit record; the chain `*` stands for every chain without a record of its own. */
export type ChainLimits = RateLimits & { chain: string }

/** The defaults that Portolan ships with. */
export const SHIPPED_LIMITS: RateLimits = {
  per_second_limit: 100,
  per_hour_limit: 100_000,
  per_day_limit: 1_000_000,
  per_month_limit: 20_000_000,
}

/** No limit in any window. */
export const unlimited: RateLimits = {
  per_second_limit: -1,
  per_hour_limit: -1,
  per_day_limit: -1,
  per_month_limit: -1,
}

/** Where the limits of a chain come from: its record, the organization's `*` record, or neither. */
export type LimitSource = 'chain' | 'organization' | 'default'

/** Which record applies on a chain. */
export const findLimits = <record extends { chain: string }>(
  records: readonly record[],
  chain: string,
): { source: LimitSource; record: record | undefined } => {
  const own = records.find((record) => record.chain === chain)
  if (own) return { source: 'chain', record: own }
  const general = records.find((record) => record.chain === '*')
  return general
    ? { source: 'organization', record: general }
    : { source: 'default', record: undefined }
}

/** The chain's record, else the organization's `*` record, else the configured defaults. */
export const resolveLimits = (
  records: readonly ChainLimits[],
  chain: string,
  defaults: RateLimits = SHIPPED_LIMITS,
): RateLimits =>
  // Without an object of its own: this is done for every call of the gateway.
  records.find((record) => record.chain === chain) ??
  // The record of the organization applies to every chain without its own.
  records.find((record) => record.chain === '*') ??
  defaults

/** One limited window as it stands after a decision. */
type WindowState = {
  window: WindowName
  limit: number
  remaining: number
  /** Until more becomes available. */
  reset_ms: number
  /** Length of the window. */
  seconds: number
}

/** The answer to one call, or to a batch taken as a whole. */
export type Decision = {
  allowed: boolean
  /** Refused: the window that stays closed longest. Admitted: the one that runs out first. */
  window: WindowName | undefined
  /** Of that window; -1 when no window is limited. */
  limit: number
  /** Of that window; -1 when no window is limited. */
  remaining: number
  /** 0 when admitted. */
  retry_after_ms: number
  /** Every limited window, for the response headers. */
  windows: WindowState[]
}

/** How much fits into each window before the call; Infinity where there is no limit. */
export type Room = {
  second: number
  hour: number
  day: number
  month: number
  /** Until the sliding window has room for one more call than now. */
  second_reset_ms: number
  /** Until the sliding window has room for this cost. */
  second_wait_ms: number
}

/** Whether the cost fits into all four windows. */
export const fits = (room: Room, cost: number): boolean =>
  cost <= room.second && cost <= room.hour && cost <= room.day && cost <= room.month

// Adds a window to the list, and keeps the one that decides: the caller sees one number to act on.
const addWindow = (
  decision: Decision,
  state: WindowState,
  before: number,
  cost: number,
  wait_ms: number,
): void => {
  const { allowed } = decision
  decision.windows.push(state)
  const decisive = allowed
    ? // Of two windows equally full the longer one matters: it stays empty longer.
      decision.window === undefined || state.remaining <= decision.remaining
    : cost > before && (decision.window === undefined || wait_ms > decision.retry_after_ms)
  if (!decisive) return
  decision.window = state.window
  decision.limit = state.limit
  decision.remaining = state.remaining
  if (!allowed) decision.retry_after_ms = wait_ms
}

type Outcome = { room: Room; cost: number; taken: number; now: number }

const addCalendarWindow = (
  decision: Decision,
  { room, cost, taken, now }: Outcome,
  window: 'hour' | 'day' | 'month',
  limit: number,
  { start, end }: { start: number; end: number },
): void => {
  if (limit < 0) return
  const before = room[window]
  const reset_ms = end - now
  const remaining = Math.max(0, before - taken)
  const state = { window, limit, remaining, reset_ms, seconds: (end - start) / 1_000 }
  addWindow(decision, state, before, cost, reset_ms)
}

/** Describes an outcome; `room` is what there was before it. */
export const describe = (
  entry: Entry,
  limits: RateLimits,
  room: Room,
  cost: number,
  now: number,
): Decision => {
  const allowed = fits(room, cost)
  const decision: Decision = {
    allowed,
    window: undefined,
    limit: -1,
    remaining: -1,
    retry_after_ms: 0,
    windows: [],
  }
  // A refused call counts in no window.
  const taken = allowed ? cost : 0
  if (limits.per_second_limit >= 0) {
    const state: WindowState = {
      window: 'second',
      limit: limits.per_second_limit,
      remaining: Math.max(0, room.second - taken),
      reset_ms: room.second_reset_ms,
      seconds: 1,
    }
    addWindow(decision, state, room.second, cost, room.second_wait_ms)
  }
  const outcome = { room, cost, taken, now }
  addCalendarWindow(decision, outcome, 'hour', limits.per_hour_limit, entry.hour)
  addCalendarWindow(decision, outcome, 'day', limits.per_day_limit, entry.day)
  addCalendarWindow(decision, outcome, 'month', limits.per_month_limit, entry.month)
  return decision
}

// The largest integer that a structured field can hold (RFC 9651, 3.3.1).
const LARGEST = 999_999_999_999_999

const integer = (value: number): number => Math.min(LARGEST, value)

// At least one second: a client that retries after zero seconds would only be refused again.
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

/** Makes the same as names and values in turn. */
export function createRateLimitList(): (decision: Decision) => string[] {
  const toPolicy = rememberPolicy(policyOf)
  return (decision) => listOf(decision, toPolicy)
}

const lineStarts: Readonly<Record<WindowName, string>> = {
  second: 'RateLimit: "second";r=',
  hour: 'RateLimit: "hour";r=',
  day: 'RateLimit: "day";r=',
  month: 'RateLimit: "month";r=',
}

/** Makes the same as text, one line each. The gateway does this for every call. */
export function createRateLimitLines(): (decision: Decision) => string {
  const policyLine = rememberPolicy((windows) => `RateLimit-Policy: ${policyOf(windows)}\r\n`)
  return (decision) => {
    const { windows, window, allowed } = decision
    let lines = windows.length > 0 ? policyLine(windows) : ''
    for (let at = 0; at < windows.length; at++) {
      const { window: name, remaining, reset_ms } = windows[at] as WindowState
      if (name !== window) continue
      lines = `${lineStarts[name]}${integer(remaining)};t=${wholeSeconds(reset_ms)}\r\n${lines}`
    }
    if (!allowed && !isBlocked(decision)) lines += `Retry-After: ${retryAfterSeconds(decision)}\r\n`
    return lines
  }
}

/** The policy of one caller after the other is rarely new. */
function rememberPolicy(toText: (windows: WindowState[]) => string) {
  let last: WindowState[] = []
  let text = ''
  return (windows: WindowState[]): string => {
    if (!isSamePolicy(windows, last)) text = toText(windows)
    last = windows
    return text
  }
}

function listOf(decision: Decision, toPolicy: (windows: WindowState[]) => string): string[] {
  const { windows, window, allowed } = decision
  const headers: string[] = []
  for (const one of windows) if (one.window === window) headers.push('RateLimit', stateOf(one))
  if (windows.length > 0) headers.push('RateLimit-Policy', toPolicy(windows))
  if (!allowed && !isBlocked(decision))
    headers.push('Retry-After', String(retryAfterSeconds(decision)))
  return headers
}

const stateOf = ({ window, remaining, reset_ms }: WindowState): string =>
  `"${window}";r=${integer(remaining)};t=${wholeSeconds(reset_ms)}`

function isSamePolicy(windows: WindowState[], others: WindowState[]): boolean {
  if (windows.length !== others.length) return false
  for (let index = 0; index < windows.length; index++) {
    const one = windows[index] as WindowState
    const other = others[index] as WindowState
    if (one.window !== other.window || one.limit !== other.limit) return false
    if (one.seconds !== other.seconds) return false
  }
  return true
}

const policyOf = (windows: WindowState[]): string =>
  windows
    .map(({ window, limit, seconds }) => `"${window}";q=${integer(limit)};w=${seconds}`)
    .join(', ')
