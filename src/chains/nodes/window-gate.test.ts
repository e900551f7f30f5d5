import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRandom } from '../../../test/helpers/random.ts'
import { createWindowGate } from './window-gate.ts'

test('a node never receives more than the limit in any second, whatever the network delays', () => {
  const calls = fc.array(
    fc.record({
      pause: fc.nat({ max: 300 }),
      there: fc.nat({ max: 900 }),
      back: fc.nat({ max: 900 }),
    }),
    { minLength: 20, maxLength: 120 },
  )
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), calls, (limit, steps) => {
      const gate = createWindowGate(limit)
      const received: number[] = []
      let answers: number[] = []
      let now = 0
      const endUntil = (until: number) => {
        for (const at of answers.filter((one) => one <= until).toSorted((a, b) => a - b))
          gate.end(at)
        answers = answers.filter((one) => one > until)
      }
      for (const { pause, there, back } of steps) {
        now += pause
        endUntil(now)
        for (let waitMs = gate.waitMs(now); waitMs > 0; waitMs = gate.waitMs(now)) {
          now += waitMs
          endUntil(now)
        }
        gate.begin(now)
        received.push(now + there)
        answers.push(now + there + back)
      }
      received.sort((a, b) => a - b)
      for (const [at, time] of received.entries())
        expect((received[at + limit] ?? Number.POSITIVE_INFINITY) - time).toBeGreaterThanOrEqual(
          1_000,
        )
    }),
  )
})

test('calls continue at the rate of the plan', () => {
  const gate = createWindowGate(10)
  let [now, calls] = [0, 0]
  while (now < 60_000) {
    const waitMs = gate.waitMs(now)
    if (waitMs > 0) now += waitMs
    else {
      gate.begin(now)
      gate.end(now)
      calls++
    }
  }
  expect(calls).toBe(600)
})

// As a tracker does: more calls than the plan carries, and answers that take between 5 and 250 ms.
test.for([1, 10, 25, 100])('a plan of %i calls a second refuses none in 15 minutes', (limit) => {
  const random = createRandom(limit)
  const gate = createWindowGate(limit)
  const received: number[] = []
  let answers: number[] = []
  let now = 0
  while (now < 900_000) {
    const due = answers.filter((one) => one <= now).toSorted((a, b) => a - b)
    for (const at of due) gate.end(at)
    answers = answers.filter((one) => one > now)
    const waitMs = gate.waitMs(now)
    if (waitMs > 0) {
      now += Math.min(waitMs, 10)
      continue
    }
    gate.begin(now)
    const there = 2 + random() * 120
    received.push(now + there)
    answers.push(now + there + 3 + random() * 130)
  }
  received.sort((a, b) => a - b)
  const refused = received.filter((time, at) => at >= limit && time - received[at - limit]! < 1_000)
  expect(refused).toEqual([])
  // An answer's time is lost per second.
  expect(received.length).toBeGreaterThan(0.75 * limit * 900)
})

test('less than one call in a second is kept too', () => {
  const gate = createWindowGate(0.5)
  gate.take(0)
  expect(gate.waitMs(0)).toBe(2_000)
})
