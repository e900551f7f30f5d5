import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createByteMap,
  createByteSet,
  cutBytes,
  distinctBytes,
  groupByBytes,
  keyOf,
} from './bytes.ts'

const bytes = fc.uint8Array({ maxLength: 6, max: 1 })

describe('byte maps', () => {
  it('behave as a map of strings, for byte strings of any length', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(bytes, fc.nat()), { maxLength: 200 }), (entries) => {
        const map = createByteMap<number>()
        const model = new Map<string, number>()
        for (const [key, value] of entries) {
          if (value % 2 === 0) {
            map.set(key, value)
            model.set(keyOf(key), value)
            continue
          }
          const first = model.get(keyOf(key)) ?? value
          expect(map.getOrSet(key, value)).toBe(first)
          model.set(keyOf(key), first)
        }
        expect(map.size).toBe(model.size)
        expect(map.values()).toEqual([...model.values()])
        for (const [key] of entries) expect(map.get(key)).toBe(model.get(keyOf(key)))
        expect(map.get(Uint8Array.of(9))).toBeUndefined()
      }),
    )
  })

  it('keep the first of each, in order, and group', () => {
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 100 }), (items) => {
        const keys = [...new Set(items.map(keyOf))]
        expect(distinctBytes(items).map(keyOf)).toEqual(keys)
        const set = createByteSet(items)
        expect(set.size).toBe(keys.length)
        for (const item of items) expect(set.has(item)).toBe(true)
        expect(set.has(Uint8Array.of(9, 9))).toBe(false)
        const grouped = groupByBytes(items.entries().toArray(), ([, item]) => item)
        for (const item of items)
          expect(grouped(item).map(([index]) => index)).toEqual(
            [...items.keys()].filter((index) => keyOf(items[index]!) === keyOf(item)),
          )
        expect(grouped(Uint8Array.of(9))).toEqual([])
      }),
    )
  })

  it('hold a hundred thousand addresses', () => {
    const items = Array.from({ length: 100_000 }, (_, index) => {
      const address = Buffer.alloc(20)
      address.writeUInt32BE(index, 16)
      return address
    })
    const set = createByteSet(items)
    expect(set.size).toBe(items.length)
    expect(items.every((item) => set.has(item))).toBe(true)
    expect(set.has(Buffer.alloc(20, 1))).toBe(false)
  })
})

it('bytes are cut into pieces, of which the same one is one object', () => {
  const pieces = fc.array(fc.uint8Array({ minLength: 8, maxLength: 8, max: 1 }), { maxLength: 300 })
  fc.assert(
    fc.property(pieces, (given) => {
      const { distinct, at } = cutBytes(Uint8Array.from(given.flatMap((one) => [...one])), 8)
      expect([...at].map((place) => keyOf(distinct[place]!))).toEqual(given.map(keyOf))
      expect(distinct.map(keyOf)).toEqual([...new Set(given.map(keyOf))])
    }),
  )
})
