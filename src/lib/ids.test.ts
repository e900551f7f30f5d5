import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createIds, isUuid } from './ids.ts'

it('ids sort in the order of their creation, whatever the clock does', () => {
  const ids = fc.array(fc.integer({ min: -3, max: 3 }), { maxLength: 200 })
  fc.assert(
    fc.property(ids, fc.integer({ min: 1, max: 60 }), (steps, repeat) => {
      let ms = 1_790_000_000_000
      const { uuid } = createIds(() => ms)
      const made = steps.flatMap((step) => {
        ms += step
        return Array.from({ length: repeat }, uuid)
      })
      expect(made).toEqual(made.toSorted())
      expect(new Set(made).size).toBe(made.length)
    }),
  )
})

it('ids are UUIDs of version 7 that begin with the millisecond', () => {
  const { uuid } = createIds(() => 0x0199_1234_abcd)
  const id = uuid()
  expect(isUuid(id)).toBe(true)
  expect(id).toMatch(/^01991234-abcd-7[0-9a-f]{3}-[89ab]/)
})

it('more ids than a millisecond can count continue in the next one', () => {
  const { uuid } = createIds(() => 1_000)
  const made = Array.from({ length: 10_000 }, uuid)
  expect(made).toEqual(made.toSorted())
  expect(new Set(made).size).toBe(10_000)
})
