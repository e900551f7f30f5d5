import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createByteMap, createByteSet, distinctBytes, groupByBytes, keyOf } from './bytes.ts'

const bytes = fc.uint8Array({ maxLength: 3, max: 3 })

describe('byte maps', () => {
  it('do what a map of texts does, for byte strings of any length', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(bytes, fc.nat()), { maxLength: 200 }), (entries) => {
        const map = createByteMap<number>()
        const model = new Map<string, number>()
        for (const [key, value] of entries) {
          map.set(key, value)
          model.set(keyOf(key), value)
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
