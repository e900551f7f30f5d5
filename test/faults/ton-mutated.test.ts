import { expect, it } from 'vitest'
import { runMutated } from './ton-mutated.ts'

it('no damaged transaction of a recorded block stops the tracker, or loses the record of another one', () => {
  const { blocks, damaged, undecoded, decoded, movements } = runMutated({ blocks: 40, seed: 3 })
  expect(blocks).toBe(40)
  expect(damaged).toBeGreaterThan(50)
  expect(undecoded).toBeGreaterThan(10)
  expect(decoded).toBeGreaterThan(10)
  expect(movements).toBeGreaterThan(300)
}, 120_000)
