// Rate limits in front of operations and the gateway. A large body counts as several calls and is counted before it is
// parsed, so that the cost of a caller is bounded by its limits and not by what it sends.

import { setTimeout as delay } from 'node:timers/promises'
import { OperationError } from '../../contract/errors/errors.ts'
import { type JsonShape, measureJson } from '../../lib/json/scan.ts'
import { createTurns } from '../../lib/turns.ts'
import {
  type Decision,
  isBlocked,
  type RateLimits,
  rateLimitHeaders,
  retryAfterSeconds,
} from '../limits/decision.ts'
import type { Limiter } from '../limits/limiter.ts'
import { createLoopPace, exemptMs, type LoopPace } from '../limits/loop-pace.ts'
import type { LimitRecords } from './limit-records.ts'

/** The single check of rate limits, in front of operations and gateway calls alike. */
export type Admission = {
  /** Counts calls of an organization on a chain; the decision says whether they may continue. */
  admit(organization_id: string, chain: string, cost?: number): Decision | Promise<Decision>
  /**
   * The same for one call that counts as many, less what was paid for it before. It never counts as more
   * than the smallest limit, because then no wait would help.
   */
  admitUpTo(organization_id: string, chain: string, cost: number, paid?: number): Promise<Paid>
  /** Of bodies that take long to read, and of large answers. */
  pace: Omit<LoopPace, 'note'>
  /** Resolves in a turn of the event loop in which no other long body is read; undefined for a short one. */
  letOthersRun(organization_id: string, bytes: number): Promise<void> | undefined
}

/** A decision, and how much was counted for the call in all. */
export type Paid = {
  decision: Decision
  paid: number
  /** Set where the call is refused although it is within the limits. */
  refusal?: OperationError
  /** When the body may be looked at, by the monotonic clock. */
  waitUntil?: number
}

/** Joins the records of an organization with the counters. */
export function createAdmission(
  records: LimitRecords,
  limiter: Limiter,
  { replicas = 1, pace = createLoopPace() }: { replicas?: number; pace?: LoopPace } = {},
): Admission {
  const turns = createTurns({ perClient: 0, perTurn: 1 })
  return {
    pace,
    letOthersRun(organization_id, bytes) {
      if (bytes <= longBodyBytes) return undefined
      return new Promise((resolve) => turns.run(organization_id, resolve))
    },
    admit(organization_id, chain, cost = 1) {
      pace.note(organization_id)
      const limits = records.limitsOf(organization_id, chain)
      // Without awaiting what is there already: the gateway makes tens of thousands of calls a second.
      if (limits instanceof Promise)
        return limits.then((known) => limiter.take({ organization_id, chain, limits: known, cost }))
      return limiter.take({ organization_id, chain, limits, cost })
    },
    async admitUpTo(organization_id, chain, cost, paid = 0) {
      pace.note(organization_id)
      const limits = await records.limitsOf(organization_id, chain)
      const whole = Math.max(paid, Math.min(cost, smallestLimit(limits, replicas)))
      const taken = { organization_id, chain, limits, cost: whole - paid }
      const decision = await limiter.take(taken)
      return { decision, paid: decision.allowed ? whole : paid }
    },
  }
}

/** Infinity without any limit; at least one, so that a limit of 0 refuses. */
function smallestLimit(limits: RateLimits, replicas: number): number {
  const { per_second_limit, per_hour_limit, per_day_limit, per_month_limit } = limits
  const all = [per_second_limit, per_hour_limit, per_day_limit, per_month_limit]
  const set = all.filter((limit) => limit >= 0).map((limit) => Math.floor(limit / replicas))
  return Math.max(1, Math.min(...set, Number.POSITIVE_INFINITY))
}

/** The refusal of a call that does not fit into a window. */
export function rateLimited(decision: Decision): OperationError {
  const { window, limit } = decision
  if (isBlocked(decision))
    return new OperationError('RATE_LIMIT_BLOCKED', { headers: rateLimitHeaders(decision) })
  return new OperationError('RATE_LIMITED', {
    detail: `The limit of ${limit} calls per ${window} is used up.`,
    headers: rateLimitHeaders(decision),
    retryAfter: retryAfterSeconds(decision),
  })
}

/** Bodies up to this size are one call each: what they can cost is bounded by their size. */
export const smallBodyBytes = 8_192
const bytesPerCall = 16_384
// About as long to parse, at worst, as 16 KiB of text are to receive, check and sign.
const valuesPerCall = 2_048
/** Values of a body at all levels: arrays, objects, members and elements. */
export const maxBodyValues = 100_000

/** A larger body after its size and its values were counted against the limits. */
export type AdmittedBody = Paid & {
  /** Undefined when it was refused before it was looked at. */
  shape: JsonShape | undefined
}

/**
 * Counts a body against the limits by its bytes, which needs no look at it. One whose organization has to wait too long for
 * its earlier ones is refused, counts as one call, and need not be read.
 */
export async function admitSize(
  admission: Admission,
  { organization_id, chain }: { organization_id: string; chain: string },
  bytes: number,
): Promise<Paid> {
  const { pace } = admission
  const costMs = bytes / bytesPerMs
  const tooSoon = refusalOf(() => pace.check(organization_id, costMs))
  if (tooSoon)
    return { ...(await admission.admitUpTo(organization_id, chain, 1)), refusal: tooSoon }
  const paid = await admission.admitUpTo(organization_id, chain, Math.ceil(bytes / bytesPerCall))
  if (!paid.decision.allowed) return paid
  let waitMs = 0
  // Others that were announced meanwhile may have taken the time.
  const refusal = refusalOf(() => {
    waitMs = pace.take(organization_id, costMs)
  })
  return refusal ? { ...paid, refusal } : { ...paid, waitUntil: performance.now() + waitMs }
}

/** Why something is refused; undefined where it is not. */
const refusalOf = (action: () => void): OperationError | undefined => {
  try {
    action()
    return undefined
  } catch (error) {
    if (error instanceof OperationError) return error
    throw error
  }
}

/**
 * Counts a body against the limits before it is parsed: first by its bytes, unless that was done when its
 * length was announced, then by its values, which needs one walk. A refused caller costs no more than that.
 */
export async function admitBody(
  admission: Admission,
  tenant: { organization_id: string; chain: string },
  body: { bytes: number; text(): string; maxDepth: number; ahead?: Paid | undefined },
): Promise<AdmittedBody> {
  const first = body.ahead ?? (await admitSize(admission, tenant, body.bytes))
  if (!first.decision.allowed || first.refusal) return { ...first, shape: undefined }
  const { organization_id, chain } = tenant
  const { maxDepth } = body
  const { pace } = admission
  await pauseFor((first.waitUntil ?? 0) - performance.now())
  await admission.letOthersRun(organization_id, body.bytes)
  const shape = measureJson(body.text(), { maxDepth, maxValues: maxBodyValues })
  const byValues = Math.ceil(shape.values / valuesPerCall)
  if (shape.beyond) return { ...first, shape }
  const admitted =
    byValues > first.paid
      ? await admission.admitUpTo(organization_id, chain, byValues, first.paid)
      : first
  const [bytesMs, valuesMs] = [body.bytes / bytesPerMs, shape.values / valuesPerMs]
  if (!admitted.decision.allowed) return { ...admitted, shape }
  // One that has waited for its bytes does not wait again.
  if (bytesMs > exemptMs) pace.spend(organization_id, valuesMs)
  else {
    let waitMs = 0
    const refusal = refusalOf(() => {
      waitMs = pace.take(organization_id, bytesMs + valuesMs)
    })
    if (refusal) return { ...admitted, shape, refusal }
    await pauseFor(waitMs)
  }
  // Next comes the pass that parses it.
  await admission.letOthersRun(organization_id, body.bytes)
  return { ...admitted, shape }
}

// Of all passes over a body together: 4 MiB in one string take 20 ms, and collecting what they leave behind takes 50 ms: a
// collection of the whole heap for each. 90,000 values in it take 23 ms more.
const bytesPerMs = 60_000
const valuesPerMs = 4_000

const pauseFor = (ms: number): Promise<void> | undefined => (ms > 0 ? delay(ms) : undefined)

/**
 * One pass over a longer body takes place in each turn of the event loop, those of organizations in rotation, and requests
 * that wait are served in between. 4 MiB take four passes of 2 to 9 ms: together they were the longest delay that one tenant
 * within its limits caused others. Subscriptions with 1,000 addresses (44 kB) came several in one turn and took 2 ms each.
 */
const longBodyBytes = 32_768
