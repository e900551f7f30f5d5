import { expect, it } from 'vitest'
import { runMutated } from './polkadot-mutated.ts'

it('damaged events of a block never stop its reading, nor lose the records before the damage', async () => {
  const { blocks, decoded, gaps, kept, slowest_ms } = await runMutated({ blocks: 600, seed: 3 })
  expect(blocks).toBe(600)
  expect(decoded).toBeGreaterThan(50)
  expect(gaps).toBeGreaterThan(100)
  expect(kept).toBeGreaterThan(1_000)
  // A count that is damaged must not make it loop.
  expect(slowest_ms).toBeLessThan(5_000)
}, 120_000)
