import fc from 'fast-check'
import { expect, it } from 'vitest'
import { decodeBase58, encodeBase58 } from './base58.ts'

it.each([
  ['', ''],
  ['00', '1'],
  ['000001', '112'],
  ['68656c6c6f20776f726c64', 'StV1DL6CwTryKyV'],
  ['00000000000000000000', '1111111111'],
])('%s is %s', (hex, text) => {
  expect(encodeBase58(Buffer.from(hex, 'hex'))).toBe(text)
  expect(decodeBase58(text)?.toString('hex')).toBe(hex)
})

it.each(['0', 'O', 'I', 'l', 'a b', 'é', '+'])('%s is not base58', (text) => {
  expect(decodeBase58(text)).toBeUndefined()
})

it('brings any bytes back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      expect(decodeBase58(encodeBase58(bytes))).toEqual(Buffer.from(bytes))
    }),
  )
})
