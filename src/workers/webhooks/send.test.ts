import { expect, test } from 'vitest'
import { nextAttempt, retryPauses } from './send.ts'

const now = Date.parse('2026-01-01T00:00:00Z')
const at = (failed: number, random = 0.5, retryAfter?: string) => {
  const time = nextAttempt({ now, failed, random, retryAfter })
  return time === undefined ? undefined : (time - now) / 1000
}

test('the pauses are those of the standard, and after ten attempts there is none', () => {
  expect(retryPauses.map((_, index) => at(index + 1))).toEqual([
    5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400,
  ])
  expect(at(10)).toBeUndefined()
})

test('they are about three days in all', () => {
  const hours = retryPauses.reduce((sum, pause) => sum + pause, 0) / 3_600_000
  expect([hours * 0.8, hours, hours * 1.2].map(Math.round)).toEqual([60, 76, 91])
})

test('each is up to a fifth shorter or longer', () => {
  expect([at(1, 0), at(1, 1)]).toEqual([4, 6])
  expect([at(9, 0), at(9, 1)]).toEqual([69_120, 103_680])
})

test('a receiver can ask for a longer pause, not for a shorter one or for more than a day', () => {
  expect(at(1, 0.5, '120')).toBe(120)
  expect(at(2, 0.5, '120')).toBe(300)
  expect(at(1, 0.5, '999999')).toBe(86_400)
  expect(at(1, 0.5, 'Thu, 01 Jan 2026 00:10:00 GMT')).toBe(600)
  expect(at(1, 0.5, 'Wed, 31 Dec 2025 00:10:00 GMT')).toBe(5)
  for (const nonsense of ['', 'soon', '-5', '1.5', '0x10', '1e9'])
    expect(at(1, 0.5, nonsense)).toBe(5)
  expect(at(10, 0.5, '120')).toBeUndefined()
})
