import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import {
  formatAge,
  formatConstant,
  formatCount,
  formatDuration,
  formatMeasure,
  formatPercent,
  formatUnits,
  parseUnits,
  shorten,
  shortenUnits,
  toTime,
} from './format.ts'

describe('formatUnits', () => {
  it.each([
    ['1500000', 6, '1.5'],
    ['1', 18, '0.000000000000000001'],
    ['123456789012345678901234567890', 18, '123,456,789,012.34567890123456789'],
    ['0', 9, '0'],
    ['1000', 0, '1,000'],
    ['-25', 1, '-2.5'],
    ['not a number', 2, 'not a number'],
  ])('writes %s with %i decimals as %s', (value, decimals, text) => {
    expect(formatUnits(value, decimals)).toBe(text)
  })

  it('loses no digit of any amount', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 256n }), fc.nat(36), (amount, decimals) => {
        expect(parseUnits(formatUnits(amount, decimals), decimals)).toBe(amount)
      }),
    )
  })
})

test('parseUnits refuses what it cannot hold exactly', () => {
  expect(parseUnits('0.1', 0)).toBeUndefined()
  expect(parseUnits('1e3', 18)).toBeUndefined()
  expect(parseUnits('', 18)).toBeUndefined()
  expect(parseUnits('1.50', 1)).toBe(15n)
})

test('shortenUnits keeps the first digits of small amounts', () => {
  expect(shortenUnits('0.000000000000000001')).toBe('0.000000000000000001')
  expect(shortenUnits('0.0000123456789')).toBe('0.0000123456…')
  expect(shortenUnits('12.3456789')).toBe('12.345678…')
  expect(shortenUnits('12')).toBe('12')
})

test('ages are in the largest unit that fits', () => {
  const now = Date.parse('2026-01-31T12:00:00Z')
  const before = (seconds: number) => formatAge(now - seconds * 1000, now)
  expect([0, 12, 60, 3_599, 3_600, 86_400, 86_400 * 44, 86_400 * 60].map(before)).toEqual([
    'now',
    '12 s ago',
    '1 min ago',
    '59 min ago',
    '1 h ago',
    '1 d ago',
    '44 d ago',
    '2025-12-02',
  ])
  expect(formatAge(now + 7_200_000, now)).toBe('in 2 h')
})

test('numbers for people', () => {
  expect(formatCount(12345678901234567890n)).toBe('12,345,678,901,234,567,890')
  expect(formatCount('-1234')).toBe('-1,234')
  expect(formatCount(null)).toBe('–')
  expect(formatMeasure(1234.6)).toBe('1,235')
  expect(formatMeasure(0.126, 'ms')).toBe('0.13 ms')
  expect(formatMeasure(20)).toBe('20')
  expect(formatPercent(0.9996)).toBe('99.96 %')
  expect(formatPercent(1)).toBe('100 %')
  expect(formatDuration(1_500)).toBe('1.5 s')
})

test('times, constants and identifiers', () => {
  expect(toTime(1_700_000_000)).toBe(1_700_000_000_000)
  expect(toTime('2026-01-01T00:00:00.000Z')).toBe(Date.parse('2026-01-01T00:00:00Z'))
  expect(toTime('')).toBeUndefined()
  expect(formatConstant('WEBHOOK_STATUS_ON_HOLD', 'WEBHOOK_STATUS_')).toBe('On hold')
  expect(shorten('0x00000000219ab540356cbb839cbe05303d7705fa')).toBe('0x000000…7705fa')
})
