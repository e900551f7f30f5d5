import fc from 'fast-check'
import { expect, it } from 'vitest'
import { toInteger } from './integers.ts'

it('writes integers of any size without loss', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), (value) => {
      expect(JSON.stringify({ value: toInteger(value) })).toBe(`{"value":${value}}`)
    }),
  )
})

it('is a plain number as long as every reader keeps it', () => {
  expect(toInteger(2n ** 53n - 1n)).toBe(Number.MAX_SAFE_INTEGER)
  expect(JSON.stringify([toInteger(2n ** 53n), toInteger(2n ** 53n + 1n)])).toBe(
    '[9007199254740992,9007199254740993]',
  )
})
