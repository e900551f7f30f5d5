import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createNonces } from './nonces.ts'

test('are microseconds with a random part', () => {
  const nonces = createNonces(
    () => 1_800_000_000_123.9,
    () => 0.4567,
  )
  expect([nonces.next(), nonces.next()]).toMatchInlineSnapshot(`
    [
      {
        "sync": 0,
        "text": "1800000000123456",
      },
      {
        "sync": 0,
        "text": "1800000000123457",
      },
    ]
  `)
})

test('always increase, whatever the clock does', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 42 })), (times) => {
      const clock = [...times]
      const nonces = createNonces(() => clock.shift() ?? 0)
      const made = times.map(() => nonces.next().text)
      expect(made).toEqual([...new Set(made)].sort())
    }),
  )
})

test('only the first refusal of a reading moves the clock', () => {
  const nonces = createNonces(
    () => 1000,
    () => 0,
  )
  const [first, second] = [nonces.next(), nonces.next()]
  nonces.follow(first, 500)
  const third = nonces.next()
  nonces.follow(second, 400)
  expect([third.text, nonces.next().text]).toEqual(['0000000000500000', '0000000000500001'])
})
