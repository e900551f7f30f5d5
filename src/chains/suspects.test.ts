import { expect, it } from 'vitest'
import { createSuspects } from './suspects.ts'

const [bad, other] = [Buffer.from('bad'), Buffer.from('other')]

it('a suspect is read with the others again after 1,000 blocks, whether or not another one fails', () => {
  const suspects = createSuspects()
  suspects.add(bad, 5)
  expect(suspects.has(bad, 1_004)).toBe(true)
  expect(suspects.has(other, 5)).toBe(false)
  expect(suspects.has(bad, 1_005)).toBe(false)
  suspects.add(bad, 1_005)
  expect(suspects.has(bad, 1_005)).toBe(true)
})

it('the coin is never one, and the oldest of too many is forgotten', () => {
  const suspects = createSuspects()
  suspects.add(Buffer.alloc(0), 5)
  expect(suspects.has(Buffer.alloc(0), 5)).toBe(false)
  for (let number = 0; number <= 10_000; number++) suspects.add(Buffer.from(String(number)), 5)
  expect(suspects.has(Buffer.from('0'), 5)).toBe(false)
  expect(suspects.has(Buffer.from('10000'), 5)).toBe(true)
})
