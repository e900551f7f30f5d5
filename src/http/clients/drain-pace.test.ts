import { expect, test } from 'vitest'
import { createDrainPace } from './drain-pace.ts'

test('a client reads a burst at once and then waits for the pace, others do not', () => {
  let time = 0
  const pace = createDrainPace({ bytesPerSecond: 1_000, burstBytes: 500 }, () => time)
  expect(pace('a', 500)).toBe(0)
  expect(pace('a', 100)).toBe(100)
  expect(pace('a', 100)).toBe(200)
  expect(pace('b', 300)).toBe(0)
  time = 200
  expect(pace('a', 100)).toBe(100)
  time = 10_000
  expect(pace('a', 500)).toBe(0)
})
