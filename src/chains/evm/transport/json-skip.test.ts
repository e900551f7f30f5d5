import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { skipValue as skip } from './json-skip.ts'

const skipValue = (text: string, from: number) => skip(Buffer.from(text), from)

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('skipValue', () => {
  test('finds the end of any value, whatever stands behind it', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom('', '}', ']', ',', ' ', ',"a":1}'), (json, rest) => {
        const text = json.trim()
        const end = skipValue(text + rest, 0)
        // A number may go on with the digits of the rest; none of these begins with one.
        expect(end).toBe(Buffer.byteLength(text))
      }),
      { numRuns: 2_000 },
    )
  })

  test('agrees with JSON.parse about damaged values', () => {
    const damaged = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', '"', '\\', '{', ']', ',', ':', '1', '\n', 'e', '-', '.'),
      )
      .map(([json, at, junk]) => {
        const place = at % (json.length + 1)
        return json.slice(0, place) + junk + json.slice(place + 1)
      })
    fc.assert(
      fc.property(damaged, (text) => {
        const trimmed = text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '')
        expect(skipValue(trimmed, 0) === Buffer.byteLength(trimmed) && trimmed !== '').toBe(
          isJson(trimmed),
        )
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    '',
    '{',
    '[1,]',
    '{"a"}',
    '{"a":}',
    '{,}',
    '[,]',
    '1.',
    '-',
    '1e',
    '"\\x"',
    '"\\u12g4"',
    '"a',
    '"\t"',
    'tru',
    'nul',
    '{"a":1,}',
    "{'a':1}",
    '[1}',
    '{"a":1]',
  ])('refuses %s', (text) => expect(skipValue(text, 0)).toBe(-1))

  test('refuses a depth that no answer has, without using the stack', () => {
    expect(skipValue('['.repeat(1_000_000), 0)).toBe(-1)
    expect(skipValue('['.repeat(5_000) + ']'.repeat(5_000), 0)).toBe(10_000)
  })
})
