import fc from 'fast-check'
import { expect, test } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import type { Decision, RateLimits } from './decision.ts'
import { createLimiter } from './limiter.ts'
import { createManualClock } from './testing/fakes.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

const BORDERS = [
  '2026-01-01T00:00:00Z',
  '2026-03-01T00:00:00Z',
  '2028-02-29T00:00:00Z',
  '2028-03-01T00:00:00Z',
  '2100-03-01T00:00:00Z',
  '2026-11-15T13:00:00Z',
].map((time) => Date.parse(time))

const hourOf = (now: number) => Math.floor(now / HOUR)
const dayOf = (now: number) => new Date(now).toISOString().slice(0, 10)
const monthOf = (now: number) => new Date(now).toISOString().slice(0, 7)

const TOLERANCE = 300_000

/** The window of now, or one that began a little later; of all others only the last one is remembered. */
const createRemembered = <key extends string | number>(
  keyOf: (now: number) => key,
  startOf: (key: key) => number,
) => {
  let current: key | undefined
  let previous: key | undefined
  return (now: number, forget: (key: key) => void): key => {
    const wanted = keyOf(now)
    const isOver = current === undefined || wanted > current || startOf(current) > now + TOLERANCE
    if (current !== undefined && !isOver) return current
    if (wanted !== previous) forget(wanted)
    previous = current
    current = wanted
    return wanted
  }
}

type Admitted = { passed: number; hour: number; day: string; month: string; cost: number }

/** The slowest correct limiter: a list of everything admitted, counted anew for every call. */
const createReference = (limits: RateLimits, start: number) => {
  const admitted: Admitted[] = []
  let [last, passed] = [start, 0]
  const hours = createRemembered(hourOf, (hour) => hour * HOUR)
  const days = createRemembered(dayOf, (day) => Date.parse(day))
  const months = createRemembered(monthOf, (month) => Date.parse(month))
  const forget = (changed: (call: Admitted) => Partial<Admitted> | false) => {
    for (const call of admitted) Object.assign(call, changed(call) || {})
  }
  const sum = (among: (call: Admitted) => boolean) =>
    admitted.filter(among).reduce((total, call) => total + call.cost, 0)
  return (now: number, cost: number): boolean => {
    passed += Math.max(0, now - last)
    last = now
    const hour = hours(now, (left) => forget((call) => call.hour === left && { hour: -1 }))
    const day = days(now, (left) => forget((call) => call.day === left && { day: '' }))
    const month = months(now, (left) => forget((call) => call.month === left && { month: '' }))
    const within = (limit: number, used: number) => limit < 0 || used + cost <= limit
    const allowed =
      within(
        limits.per_second_limit,
        sum((call) => call.passed > passed - 1_000),
      ) &&
      within(
        limits.per_hour_limit,
        sum((call) => call.hour === hour),
      ) &&
      within(
        limits.per_day_limit,
        sum((call) => call.day === day),
      ) &&
      within(
        limits.per_month_limit,
        sum((call) => call.month === month),
      )
    if (allowed) admitted.push({ passed, hour, day, month, cost })
    return allowed
  }
}

const limit = (max: number) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max }) },
    { weight: 1, arbitrary: fc.constantFrom(-1, 0) },
  )

const limitsArbitrary = fc.record({
  per_second_limit: limit(8),
  per_hour_limit: limit(20),
  per_day_limit: limit(40),
  per_month_limit: limit(60),
})

const forward = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 400 }) },
  { weight: 3, arbitrary: fc.constantFrom(999, 1_000, 1_001) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 2 * HOUR }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 2 * DAY }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 400 * DAY }) },
)

const anyStep = fc.oneof(
  { weight: 5, arbitrary: forward },
  { weight: 1, arbitrary: forward.map((ms) => -ms) },
)

const scenario = (step: fc.Arbitrary<number>) => ({
  limits: limitsArbitrary,
  border: fc.constantFrom(...BORDERS),
  before: fc.integer({ min: 0, max: 3_000 }),
  calls: fc.array(fc.record({ step, cost: fc.constantFrom(1, 1, 1, 2, 5) }), { maxLength: 120 }),
})

test('decides like a list of timestamps, whatever the clock does', () => {
  const model = fc.record(scenario(anyStep))
  fc.assert(
    fc.property(model, ({ limits, border, before, calls }) => {
      const clock = createManualClock(border - before)
      const limiter = createLimiter({ clock, log: silentLog })
      const reference = createReference(limits, clock.now())
      for (const { step, cost } of calls) {
        clock.step(step)
        const decision = limiter.take({ organization_id: 'o', chain: 'c', limits, cost })
        expect((decision as Decision).allowed).toBe(reference(clock.now(), cost))
      }
    }),
    { numRuns: 500 },
  )
})

test('admits no more than the limit in any second, hour, day or month', () => {
  const model = fc.record(scenario(forward))
  fc.assert(
    fc.property(model, ({ limits, border, before, calls }) => {
      const clock = createManualClock(border - before)
      const limiter = createLimiter({ clock, log: silentLog })
      const admitted: { now: number; cost: number }[] = []
      for (const { step, cost } of calls) {
        clock.step(step)
        const decision = limiter.take({ organization_id: 'o', chain: 'c', limits, cost })
        if ((decision as Decision).allowed) admitted.push({ now: clock.now(), cost })
      }
      const most = (same: (now: number, other: number) => boolean): number =>
        Math.max(
          0,
          ...admitted.map(({ now }) =>
            admitted.reduce((sum, call) => sum + (same(now, call.now) ? call.cost : 0), 0),
          ),
        )
      const bound = (value: number) => (value < 0 ? Number.POSITIVE_INFINITY : value)
      const inSecond = (now: number, other: number) => other >= now && other < now + 1_000
      expect(most(inSecond)).toBeLessThanOrEqual(bound(limits.per_second_limit))
      expect(most((a, b) => hourOf(a) === hourOf(b))).toBeLessThanOrEqual(
        bound(limits.per_hour_limit),
      )
      expect(most((a, b) => dayOf(a) === dayOf(b))).toBeLessThanOrEqual(bound(limits.per_day_limit))
      expect(most((a, b) => monthOf(a) === monthOf(b))).toBeLessThanOrEqual(
        bound(limits.per_month_limit),
      )
    }),
    { numRuns: 300 },
  )
})

test('a refused caller that waits for Retry-After is admitted, unless the cost never fits', () => {
  const model = fc.record(scenario(forward))
  fc.assert(
    fc.property(model, ({ limits, border, before, calls }) => {
      const clock = createManualClock(border - before)
      const limiter = createLimiter({ clock, log: silentLog })
      const take = (cost: number) =>
        limiter.take({ organization_id: 'o', chain: 'c', limits, cost }) as Decision
      for (const { step, cost } of calls) {
        clock.step(step)
        const refused = take(cost)
        if (refused.allowed || refused.windows.some((window) => window.limit < cost)) continue
        clock.step(refused.retry_after_ms - 1)
        expect(take(cost).allowed).toBe(false)
        clock.step(1)
        expect(take(cost).allowed).toBe(true)
      }
    }),
    { numRuns: 200 },
  )
})
