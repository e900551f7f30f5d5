import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createStringCutter } from './string-cutter.ts'

const cut = (parts: Buffer[], longest: number): string => {
  const take = createStringCutter(longest)
  return Buffer.concat(parts.map((part) => take(part))).toString()
}

const split = (text: Buffer, places: readonly number[]): Buffer[] => {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length].sort(
    (a, b) => a - b,
  )
  return ends.map((end, index) => text.subarray(index === 0 ? 0 : ends[index - 1], end))
}

/** The expected rest of a value, computed from the value itself. */
const shorten = (value: unknown, longest: number): unknown => {
  const isLong = (text: string) => Buffer.byteLength(JSON.stringify(text)) - 2 > longest
  if (typeof value === 'string') return isLong(value) ? '~' : value
  if (Array.isArray(value)) return value.map((one) => shorten(one, longest))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [isLong(key) ? '~' : key, shorten(one, longest)]),
  )
}

describe('the string cutter', () => {
  it('replaces long strings and keeps everything else', () => {
    const text = `{"a":"${'x'.repeat(9)}","b":["${'y'.repeat(8)}",1]}`
    expect(cut([Buffer.from(text)], 8)).toBe(`{"a":"~","b":["yyyyyyyy",1]}`)
  })

  it('gives the same whatever the parts are', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.stringMatching(/^[\\"]{0,12}$/),
      fc.string({ minLength: 20 }),
    )
    const values = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        texts,
        fc.integer(),
        fc.array(tie('value')),
        fc.dictionary(fc.constantFrom('type', 'value', 'input'), tie('value')),
      ),
    })).value
    fc.assert(
      fc.property(
        values,
        fc.array(fc.nat(), { maxLength: 6 }),
        fc.integer({ min: 1, max: 16 }),
        (value, places, longest) => {
          const text = Buffer.from(JSON.stringify(value))
          const left = cut(split(text, places), longest)
          expect(JSON.parse(left)).toEqual(shorten(value, longest))
        },
      ),
    )
  })

  it('holds no memory for omitted entries', () => {
    const take = createStringCutter(64)
    let bytes = take(Buffer.from('{"input":"0x')).length
    for (let part = 0; part < 1_000; part++) bytes += take(Buffer.alloc(65_536, 'a')).length
    bytes += take(Buffer.from('","value":"0x1"}')).length
    expect(bytes).toBeLessThan(100)
  })
})
