import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLargeMap } from './large-map.ts'

test('a large map has what a map has, whatever is set and deleted', () => {
  const key = fc.integer({ min: 0, max: 6_000 }).map((value) => `0x${value.toString(16)}`)
  const step = fc.record({ key, value: fc.option(fc.integer(), { nil: undefined }) })
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 6_000 }), fc.array(step), (count, steps) => {
      const [map, model] = [createLargeMap<number>(), new Map<string, number>()]
      const set = (key: string, value: number) => {
        map.set(key, value)
        model.set(key, value)
      }
      for (let value = 0; value < count; value++) set(`0x${value.toString(16)}`, value)
      for (const { key, value } of steps)
        if (value === undefined) expect(map.delete(key)).toBe(model.delete(key))
        else set(key, value)
      for (const { key } of steps) expect(map.get(key)).toBe(model.get(key))
      expect(map.isEmpty()).toBe(model.size === 0)
      for (const key of [...model.keys()]) expect(map.delete(key)).toBe(true)
      expect(map.isEmpty()).toBe(true)
    }),
    { numRuns: 50 },
  )
})
