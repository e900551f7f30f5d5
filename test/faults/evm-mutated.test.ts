import { expect, it } from 'vitest'
import { runMutated } from './evm-mutated.ts'

it('no malformed log stops the tracker, or loses the record of another one', () => {
  const { blocks, damaged, movements, kept } = runMutated({ blocks: 60, seed: 3 })
  expect(blocks).toBe(60)
  expect(damaged).toBeGreaterThan(300)
  expect(kept).toBeGreaterThan(1_000)
  expect(movements).toBeGreaterThanOrEqual(kept)
}, 120_000)
