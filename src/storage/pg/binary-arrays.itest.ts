import fc from 'fast-check'
import { expect, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { encodeArray } from './binary-arrays.ts'

const { pool } = await freshDatabase()

const huge = (1n << 256n) - 1n
const amounts = fc.oneof(
  fc.bigInt({ min: -huge, max: huge }),
  // Up to and around what a number holds, and next to where a group of four digits ends.
  fc.bigInt({ min: 0n, max: 1n << 54n }),
  fc
    .tuple(
      fc.bigInt({ min: 1n, max: 9_999n }),
      fc.constantFrom(1n, 2n, 3n, 4n),
      fc.constantFrom(-1n, 0n, 1n),
    )
    .map(([times, groups, beside]) => times * 10_000n ** groups + beside),
  fc.bigInt({ min: (1n << 53n) - 4n, max: (1n << 53n) + 4n }),
  fc.constantFrom(0n, 1n, 9_999n, 10_000n, 10_001n, 100_000_000n, -10_000n, 10n ** 77n, -huge),
)
const texts = fc
  .string({ unit: 'binary', maxLength: 100 })
  .filter((text) => !text.includes('\u0000'))
const times = fc.date({
  min: new Date('0001-01-01T00:00:00Z'),
  max: new Date('9999-12-31T23:59:59.999Z'),
  noInvalidDate: true,
})
const types: [string, fc.Arbitrary<unknown>][] = [
  ['boolean', fc.boolean()],
  ['bytea', fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes))],
  ['smallint', fc.integer({ min: -(2 ** 15), max: 2 ** 15 - 1 })],
  ['integer', fc.integer()],
  ['bigint', fc.maxSafeInteger()],
  ['numeric', amounts],
  ['text', texts],
  ['timestamp with time zone', times],
  ['uuid', fc.uuid()],
  ['jsonb', fc.record({ text: texts.map((text) => text.replace(/[\ud800-\udfff]/g, '')) })],
]

test.each(types)('the server reads arrays of %s as they were', async (type, arbitrary) => {
  // The same one may stand there many times in a row.
  const runs = fc.tuple(fc.option(arbitrary), fc.integer({ min: 1, max: 9 }))
  await fc.assert(
    fc.asyncProperty(fc.array(runs, { maxLength: 30 }), async (given) => {
      const values = given.flatMap(([value, times]) => new Array<unknown>(times).fill(value))
      const { rows } = await pool.query(
        `select value, number from unnest($1::${type}[]) with ordinality v (value, number) order by 2`,
        [encodeArray(type, values)],
      )
      expect(rows.map(({ value }) => value)).toEqual(values)
    }),
    { numRuns: 30 },
  )
})

test('a value of the wrong type is refused before it is sent', () => {
  expect(() => encodeArray('bigint', [1.5])).toThrow(RangeError)
  // Cut to its lowest bits, each of these would be stored as another number.
  for (const number of [2 ** 15, -(2 ** 15) - 1, 0.5, Number.NaN, '7'])
    expect(() => encodeArray('smallint', [number])).toThrow(RangeError)
  for (const number of [2 ** 31, -(2 ** 31) - 1, 0.5, Number.NaN, '7'])
    expect(() => encodeArray('integer', [number])).toThrow(RangeError)
  expect(() => encodeArray('uuid', ['not-a-uuid'])).toThrow(TypeError)
  expect(() => encodeArray('timestamp with time zone', [new Date(Number.NaN)])).toThrow(RangeError)
  expect(() => encodeArray('money', [1])).toThrow(TypeError)
})
