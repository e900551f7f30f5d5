import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatToken, parseToken } from './token.ts'

it('tokens come back from their text', () => {
  const number = fc.integer({ min: 0, max: 2 ** 32 - 1 }).map(String)
  const location = fc
    .uint8Array({ minLength: 2, maxLength: 240 })
    .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}`)
  fc.assert(
    fc.property(fc.oneof(number, location), (text) => {
      const parsed = parseToken(text)
      expect(parsed.ok && formatToken(parsed.bytes)).toBe(text)
    }),
  )
  expect(formatToken(Buffer.alloc(0))).toBe('')
})

it('a text that is no token is refused with a sentence', () => {
  for (const text of ['', 'x', '01', '-1', '1.5', '4294967296', '0x', '0x1', '0x0', '0xzz'])
    expect(parseToken(text)).toMatchObject({ ok: false, detail: expect.stringMatching(/^[A-Z]/) })
})
