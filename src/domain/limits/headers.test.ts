import { expect, test } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import {
  createRateLimitList,
  type Decision,
  type RateLimits,
  rateLimitHeaders,
  retryAfterSeconds,
} from './decision.ts'
import { createLimiter } from './limiter.ts'
import { createManualClock } from './testing/fakes.ts'

const limits = (second: number, hour: number, day: number, month: number): RateLimits => ({
  per_second_limit: second,
  per_hour_limit: hour,
  per_day_limit: day,
  per_month_limit: month,
})

const at = (time: string, wanted: RateLimits, costs: number[]): Decision => {
  const limiter = createLimiter({ clock: createManualClock(Date.parse(time)), log: silentLog })
  const decisions = costs.map((cost) =>
    limiter.take({ organization_id: 'o', chain: 'c', limits: wanted, cost }),
  )
  return decisions.at(-1) as Decision
}

test('a success carries all policies and the window that runs out first', () => {
  const decision = at('2026-02-10T00:00:00Z', limits(100, 1000, 5000, 9000), [1])
  expect(rateLimitHeaders(decision)).toEqual({
    'RateLimit-Policy':
      '"second";q=100;w=1, "hour";q=1000;w=3600, "day";q=5000;w=86400, "month";q=9000;w=2419200',
    RateLimit: '"second";r=99;t=1',
  })
})

test('a refusal names the violated window and when to come back', () => {
  const decision = at('2026-02-10T00:59:58.900Z', limits(100, 10, 5000, 9000), [10, 1])
  expect(decision).toMatchObject({ allowed: false, window: 'hour', limit: 10, remaining: 0 })
  expect(decision.retry_after_ms).toBe(1100)
  expect(rateLimitHeaders(decision)).toMatchObject({
    RateLimit: '"hour";r=0;t=2',
    'Retry-After': '2',
  })
})

test('of several violated windows the one that stays closed longest counts', () => {
  const decision = at('2026-02-10T00:00:00Z', limits(1, 1, 1, 1), [1, 1])
  expect(decision.window).toBe('month')
  expect(retryAfterSeconds(decision)).toBe(19 * 86_400)
})

test('of windows equally full the longer one is reported', () => {
  expect(at('2026-02-10T00:00:00Z', limits(5, 5, 5, 5), [1]).window).toBe('month')
})

test('Retry-After is at least one second, and never before the reset of RateLimit', () => {
  const decision = at('2026-02-10T00:59:59.999Z', limits(-1, 1, -1, -1), [1, 1])
  expect(rateLimitHeaders(decision)).toEqual({
    'RateLimit-Policy': '"hour";q=1;w=3600',
    RateLimit: '"hour";r=0;t=1',
    'Retry-After': '1',
  })
})

test('unlimited windows are left out, and with no limit at all there are no fields', () => {
  const some = at('2026-02-10T00:00:00Z', limits(-1, -1, 7, -1), [2])
  expect(rateLimitHeaders(some)['RateLimit-Policy']).toBe('"day";q=7;w=86400')
  const none = at('2026-02-10T00:00:00Z', limits(-1, -1, -1, -1), [2])
  expect(none).toMatchObject({ allowed: true, window: undefined, limit: -1, remaining: -1 })
  expect(rateLimitHeaders(none)).toEqual({})
})

test('integers stay within the range of a structured field', () => {
  const decision = at('2026-02-10T00:00:00Z', limits(Number.MAX_SAFE_INTEGER, -1, -1, -1), [0])
  expect(rateLimitHeaders(decision)).toEqual({
    'RateLimit-Policy': '"second";q=999999999999999;w=1',
    RateLimit: '"second";r=999999999999999;t=1',
  })
})

test('the list says the same of one caller after the other', () => {
  const list = createRateLimitList()
  const february = '2026-02-10T00:00:00Z'
  const decisions = [
    at(february, limits(100, 1000, 5000, 9000), [1]),
    at(february, limits(100, 1000, 5000, 9000), [2]),
    at(february, limits(100, 1000, 5001, 9000), [1]),
    at(february, limits(100, 1000, 5001, -1), [1]),
    at('2026-03-10T00:00:00Z', limits(-1, -1, -1, 9000), [1]),
    at(february, limits(-1, -1, -1, 9000), [1]),
    at(february, limits(-1, -1, 9000, -1), [1, 9000]),
    at(february, limits(-1, -1, -1, -1), [1]),
  ]
  for (const decision of decisions) {
    const entries = Object.entries(rateLimitHeaders(decision))
    expect(list(decision)).toEqual(entries.flat())
  }
})
