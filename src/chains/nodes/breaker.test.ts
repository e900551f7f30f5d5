import { expect, test } from 'vitest'
import { createBreaker } from './breaker.ts'

const openOne = () => {
  const breaker = createBreaker()
  for (let call = 0; call < 5; call++) breaker.fail(0)
  return breaker
}

test('opens after failures in a row', () => {
  const breaker = createBreaker()
  for (let call = 0; call < 4; call++) breaker.fail(0)
  expect(breaker.state()).toBe('closed')
  breaker.succeed()
  for (let call = 0; call < 4; call++) breaker.fail(0)
  expect(breaker.state()).toBe('closed')
  breaker.fail(0)
  expect(breaker.state()).toBe('open')
  expect(breaker.allows(0)).toBe(false)
})

test('opens when half of the calls fail', () => {
  const breaker = createBreaker()
  for (let call = 0; call < 18; call++) (call % 2 ? breaker.succeed : () => breaker.fail(0))()
  expect(breaker.state()).toBe('closed')
  breaker.succeed()
  breaker.fail(0)
  expect(breaker.state()).toBe('open')
})

test('does not open when a tenth of the calls fail', () => {
  const breaker = createBreaker()
  for (let call = 0; call < 1_000; call++) {
    if (call % 10) breaker.succeed()
    else breaker.fail(0)
  }
  expect(breaker.state()).toBe('closed')
  expect(breaker.errorRate()).toBeCloseTo(0.1)
})

test('lets a few calls try after a pause and a probe, then all', () => {
  const breaker = openOne()
  breaker.probeSucceeded(100)
  expect(breaker.state()).toBe('open')
  breaker.probeSucceeded(600)
  expect(breaker.state()).toBe('half_open')
  expect([0, 2, 3].map(breaker.allows)).toEqual([true, true, false])
  for (let call = 0; call < 5; call++) breaker.succeed()
  expect(breaker.state()).toBe('closed')
  expect(breaker.errorRate()).toBe(0)
})

test('pauses longer each time that the trial fails', () => {
  const breaker = openOne()
  const pauses: number[] = []
  let now = 0
  for (let round = 0; round < 8; round++) {
    const openedAt = now
    while (breaker.state() === 'open') {
      now += 100
      breaker.probeSucceeded(now)
    }
    pauses.push(now - openedAt)
    breaker.fail(now)
  }
  expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000])
})

test('a trip while it is open begins the pause anew', () => {
  const breaker = createBreaker()
  breaker.trip(0)
  breaker.trip(400)
  breaker.probeSucceeded(600)
  expect(breaker.state()).toBe('open')
  breaker.probeSucceeded(900)
  expect(breaker.state()).toBe('half_open')
})
