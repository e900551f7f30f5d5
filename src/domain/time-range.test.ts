import { expect, test } from 'vitest'
import type { OperationError } from '../contract/errors/errors.ts'
import { readTimes } from './time-range.ts'

test('a range is whole seconds, both ends included', () => {
  expect(readTimes({ start_time: 1, end_time: 2 })).toEqual({
    from_time: new Date(1_000),
    to_time: new Date(2_999),
  })
  expect(readTimes({})).toEqual({ from_time: undefined, to_time: undefined })
})

test('a time in milliseconds or finer is refused with a hint', () => {
  const errorsOf = (times: Parameters<typeof readTimes>[0]) => {
    try {
      readTimes(times)
    } catch (error) {
      return (error as OperationError).errors
    }
    return []
  }
  const detail = 'Is in milliseconds or finer; must be Unix time in seconds.'
  const now = Date.parse('2026-11-15T00:00:00Z')
  const at = (field: string) => ({ field, reason: 'OUT_OF_RANGE', detail })
  expect(errorsOf({ start_time: now })).toEqual([at('start_time')])
  expect(errorsOf({ start_time: now * 1_000, end_time: now })).toEqual([
    at('start_time'),
    at('end_time'),
  ])
  expect(errorsOf({ start_time: now / 1_000, end_time: 99_999_999_999 })).toEqual([])
})
