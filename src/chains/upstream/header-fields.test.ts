import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readFields } from './header-fields.ts'

/** What it must be, by way of the whole. */
const model = (text: string) =>
  Object.fromEntries(
    Object.entries(JSON.parse(text)).map(([name, value]) => [
      name,
      typeof value === 'object' && value !== null ? [] : value,
    ]),
  )

test('it reads what a parser reads, and nothing of what lies deeper', () => {
  const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
  fc.assert(
    fc.property(object, fc.constantFrom(undefined, 1), (value, indent) => {
      const text = JSON.stringify(value, undefined, indent)
      expect(readFields(text)).toEqual(model(text))
    }),
    { numRuns: 200 },
  )
})

test.each(['', 'null', '[]', '"text"', '{', '{"a":1', '{"a":1 "b":2}', '{"a":}', '{a:1}'])(
  'it reads nothing from %s',
  (text) => expect(readFields(text)).toBeUndefined(),
)

test('of two equal members the last counts, as in any reader', () => {
  expect(readFields('{"hash":"a","hash":"b"}')).toEqual({ hash: 'b' })
})
