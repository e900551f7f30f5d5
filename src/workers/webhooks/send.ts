import { packRequestHeaders, packResponseHeaders } from '../../domain/webhooks/attempt-headers.ts'
import { sign } from '../../domain/webhooks/secret.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Span } from '../../lib/tracing.ts'
import type { ClaimedDelivery } from '../../storage/webhooks/delivery-claims.ts'
import type { AttemptRecord } from '../../storage/webhooks/delivery-records.ts'
import { type GuardedAnswer, GuardedFetchError } from './guarded-exchange.ts'
import type { GuardedFetch } from './guarded-fetch.ts'
import type { PendingDelivery } from './lanes.ts'

/**
 * How many bytes of an answer are kept: enough for an error page, bounded for the table of
 * attempts.
 */
const maxBytes = 16_384

/** How to send. */
export type SendOptions = {
  http: GuardedFetch
  clock: Clock
  timeoutMs: number
  /** Between 0 and 1. */
  random(): number
  signal: AbortSignal
  /** Receivers may continue its trace. */
  span?: Span | undefined
}

/** The body of a delivery (docs/decisions/webhooks.md); the same bytes in every attempt. */
const bodyOf = ({
  data,
  webhook_id,
  webhook_history_id,
  notification_type,
  create_time,
}: ClaimedDelivery): Buffer =>
  // Written out: none of these values has a character that JSON would escape.
  Buffer.from(
    `{"webhook_id":"${webhook_id}","webhook_history_id":"${webhook_history_id}","notification_type":"${notification_type}","create_time":"${create_time.toISOString()}","data":${data}}`,
  )

/** Makes one attempt; undefined when the service stopped before it was answered. */
export async function send(
  { claim, receiver }: PendingDelivery,
  { http, clock, timeoutMs, random, signal, span }: SendOptions,
): Promise<AttemptRecord | undefined> {
  const { webhook_history_id, organization_id, webhook_id, sequence } = claim
  const { claim_expire_time, retry_step } = claim
  const attempt_time = clock.now()
  const begun = performance.now()
  // Seconds, as Standard Webhooks has it; receivers compare it with their own clock.
  const timestamp = Math.floor(attempt_time / 1000)
  const body = bodyOf(claim)
  const signature = sign(receiver.secrets, { id: webhook_history_id, timestamp, body })
  // Names and values in turn. Those of ours cannot be registered (`domain/webhooks/headers.ts`).
  const headers = receiver.headers.concat(
    'content-type',
    'application/json',
    'webhook-id',
    webhook_history_id,
    'webhook-timestamp',
    `${timestamp}`,
    'webhook-signature',
    signature,
  )
  const traceparent = span && !receiver.headers.some(isTraceparent) ? span.traceparent : undefined
  if (traceparent !== undefined) headers.push('traceparent', traceparent)
  let outcome: GuardedAnswer | GuardedFetchError
  try {
    const url = receiver.webhook_endpoint
    const request = { url, method: 'POST', headers, body, timeoutMs, maxBytes, signal } as const
    outcome = await http.request(request)
  } catch (error) {
    if (!(error instanceof GuardedFetchError)) throw error
    outcome = error
  }
  if (outcome instanceof GuardedFetchError && outcome.failure === 'stopped') return undefined
  const answer = outcome instanceof GuardedFetchError ? undefined : outcome
  const is_delivered = answer !== undefined && answer.status >= 200 && answer.status < 300
  // Only 2xx counts as delivered, as Standard Webhooks requires; a redirect is a failure.
  const next = is_delivered
    ? undefined
    : nextAttempt({
        now: clock.now(),
        failed: retry_step + 1,
        retryAfter: retryAfterOf(answer),
        random: random(),
      })
  return {
    webhook_history_id,
    sequence,
    organization_id,
    webhook_id,
    claim_expire_time,
    is_delivered,
    attempt_time: new Date(attempt_time),
    duration_ms: Math.round(performance.now() - begun),
    status_code: answer?.status ?? null,
    error: is_delivered ? null : errorOf(outcome),
    response_body: answer && answer.body.length > 0 ? answer.body : null,
    request_headers: packRequestHeaders({
      ...{ custom: receiver.headers, signature, traceparent },
    }),
    response_headers: answer ? packResponseHeaders(receiver, answer.headers) : null,
    next_attempt_time: next === undefined ? null : new Date(next),
    is_gone: answer?.status === 410,
    was_failing: receiver.is_failing,
  }
}

/** Receivers may have registered one of their own. */
const isTraceparent = (text: string, at: number): boolean =>
  at % 2 === 0 && text.toLowerCase() === 'traceparent'

const errorOf = (outcome: GuardedAnswer | GuardedFetchError): string =>
  outcome instanceof GuardedFetchError
    ? outcome.message
    : `The endpoint answered ${outcome.status}.`

const retryAfterOf = (answer: GuardedAnswer | undefined): string | undefined => {
  const text = answer?.headers['retry-after']
  return Array.isArray(text) ? text[0] : text
}

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** The pauses after a first, second, … failed attempt, as Standard Webhooks recommends. */
export const retryPauses: readonly number[] = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
]

// So that what failed together does not come back together.
const jitter = 0.2
const longestWait = 24 * hour

/**
 * When to try again after so many failed attempts; undefined when all are spent. A receiver may ask
 * for a longer pause with Retry-After, of at most a day.
 */
export const nextAttempt = (options: {
  now: number
  /** Failed attempts of this round, the last one included. */
  failed: number
  retryAfter: string | undefined
  /** Between 0 and 1. */
  random: number
}): number | undefined => {
  const { now, failed, retryAfter, random } = options
  // `failed` counts from one, the list from zero. Beyond its end the delivery has failed for good.
  const pause = retryPauses[failed - 1]
  if (pause === undefined) return undefined
  const own = Math.round(pause * (1 - jitter + 2 * jitter * random))
  return now + Math.max(own, Math.min(parseRetryAfter(retryAfter, now), longestWait))
}

/** Milliseconds that a Retry-After asks for, in seconds or as a date; none when it is neither. */
const parseRetryAfter = (text: string | undefined, now: number): number => {
  if (text === undefined) return 0
  if (/^\d{1,9}$/.test(text)) return Number(text) * second
  const time = Date.parse(text)
  return Number.isNaN(time) ? 0 : Math.max(0, time - now)
}
