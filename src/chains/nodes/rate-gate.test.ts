import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseRetryAfter } from './fault.ts'
import { createRateGate } from './rate-gate.ts'

test('never lets through more than the rate and one second in advance', () => {
  const steps = fc.array(fc.nat({ max: 200 }), { minLength: 10, maxLength: 200 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), steps, (rate, pauses) => {
      const gate = createRateGate(rate)
      let now = 5_000
      let passed = 0
      for (const pause of pauses) {
        now += pause
        while (gate.waitMs(now) === 0) {
          gate.take(now)
          passed++
        }
      }
      expect(passed).toBeLessThanOrEqual(rate + ((now - 5_000) * rate) / 1000 + 1e-6)
    }),
  )
})

test('the wait that it names is enough', () => {
  const gate = createRateGate(10)
  const now = 1_000
  for (let call = 0; call < 10; call++) gate.take(now)
  const wait = gate.waitMs(now)
  expect(wait).toBe(100)
  expect(gate.waitMs(now + wait)).toBe(0)
})

test('without a rate it is always open, but for the pauses that the node asks for', () => {
  const gate = createRateGate(undefined)
  for (let call = 0; call < 1_000; call++) gate.take(0)
  expect(gate.waitMs(0)).toBe(0)
  gate.coolDown(0, 2_000)
  expect(gate.waitMs(500)).toBe(1_500)
  expect(gate.isCooling(1_999)).toBe(true)
  expect(gate.waitMs(2_000)).toBe(0)
})

test('pauses grow while the node refuses, bounded, and shrink after an answer', () => {
  const gate = createRateGate(undefined)
  let now = 0
  const pauses: number[] = []
  for (let refusal = 0; refusal < 10; refusal++) {
    gate.coolDown(now)
    // Those that were refused at the same time.
    gate.coolDown(now)
    pauses.push(gate.waitMs(now))
    now += gate.waitMs(now)
  }
  expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
  gate.relax()
  gate.coolDown(now)
  expect(gate.waitMs(now)).toBe(500)
})

test('an absurd Retry-After is bounded', () => {
  const gate = createRateGate(undefined)
  gate.coolDown(0, 1e12)
  expect(gate.waitMs(0)).toBe(60_000)
})

test.each([
  ['3', 3_000],
  ['Thu, 01 Jan 1970 00:00:10 GMT', 9_000],
  ['soon', undefined],
  [undefined, undefined],
])('Retry-After %s', (value, expected) => expect(parseRetryAfter(value, 1_000)).toBe(expected))
