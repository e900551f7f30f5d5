import { expect, test } from 'vitest'
import { createSlots } from './slots.ts'

test('a process that fails to start again and again never gets the slot of one that lives', () => {
  const slots = createSlots()
  const living = [slots.take(), slots.take(), slots.take()]
  const failed = new Set<number>()
  for (let attempt = 0; attempt < 1_000; attempt++) {
    const slot = slots.take()
    failed.add(slot)
    slots.release(slot)
  }
  expect(living.filter((slot) => failed.has(slot))).toEqual([])
  expect(failed.size).toBe(251)
  expect([Math.min(...failed), Math.max(...failed)]).toEqual([4, 254])
})

test('a slot that was just released comes last, and there are no more than 254', () => {
  const slots = createSlots()
  const first = slots.take()
  slots.release(first)
  const all = Array.from({ length: 254 }, () => slots.take())
  expect(all.at(-1)).toBe(first)
  expect(new Set(all).size).toBe(254)
  expect(() => slots.take()).toThrow('254 processes')
})
