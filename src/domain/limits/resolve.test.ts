import { expect, test } from 'vitest'
import { resolveLimits, SHIPPED_LIMITS } from './decision.ts'

const own = { ...SHIPPED_LIMITS, chain: 'c', per_second_limit: 1 }
const star = { ...SHIPPED_LIMITS, chain: '*', per_second_limit: 2 }
const defaults = { ...SHIPPED_LIMITS, per_second_limit: 3 }

test('the record of the chain comes first, then the star record, then the defaults', () => {
  expect(resolveLimits([star, own], 'c', defaults)).toBe(own)
  expect(resolveLimits([star, own], 't', defaults)).toBe(star)
  expect(resolveLimits([own], 't', defaults)).toBe(defaults)
  expect(resolveLimits([], 'admin')).toBe(SHIPPED_LIMITS)
})

test('the shipped defaults', () => {
  expect(SHIPPED_LIMITS).toEqual({
    per_second_limit: 100,
    per_hour_limit: 100_000,
    per_day_limit: 1_000_000,
    per_month_limit: 20_000_000,
  })
})
