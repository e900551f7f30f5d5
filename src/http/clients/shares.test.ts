import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createShares } from './shares.ts'

it('has a bound for each client and one for all', () => {
  const shares = createShares({ perClient: 3, all: 5 })
  expect(shares.take('192.0.2.1', 3)).toBeUndefined()
  expect(shares.take('192.0.2.1', 1)).toBe('client')
  expect(shares.take('2001:db8::1', 2)).toBeUndefined()
  expect(shares.take('192.0.2.2', 1)).toBe('all')
  expect(shares.take(undefined, 1)).toBe('all')
  shares.giveBack('192.0.2.1', 3)
  expect(shares.take('2001:db8::2', 2)).toBe('client')
  expect(shares.take(undefined, 3)).toBeUndefined()
  expect(shares.status()).toEqual({ taken: 5, refused: { client: 2, all: 2 } })
})

it('never gives more than the bounds, and forgets nothing that is taken', () => {
  const step = fc.record({ client: fc.nat(3), amount: fc.integer({ min: 1, max: 4 }) })
  fc.assert(
    fc.property(fc.array(fc.tuple(step, fc.boolean()), { maxLength: 100 }), (steps) => {
      const shares = createShares({ perClient: 6, all: 15 })
      const held: { client: string; amount: number }[] = []
      for (const [{ client, amount }, isTaking] of steps) {
        const name = `192.0.2.${client}`
        const own = held.filter((one) => one.client === name)
        const sumOf = (some: typeof held) => some.reduce((sum, one) => sum + one.amount, 0)
        if (isTaking) {
          const expected =
            sumOf(own) + amount > 6 ? 'client' : sumOf(held) + amount > 15 ? 'all' : undefined
          expect(shares.take(name, amount)).toBe(expected)
          if (!expected) held.push({ client: name, amount })
        } else if (own[0]) {
          held.splice(held.indexOf(own[0]), 1)
          shares.giveBack(name, own[0].amount)
        }
        expect(shares.status().taken).toBe(sumOf(held))
      }
    }),
  )
})
