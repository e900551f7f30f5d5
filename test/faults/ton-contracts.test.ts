import { expect, it } from 'vitest'
import { runContracts } from './ton-contracts.ts'

it('no contract makes balances of others unreadable, or counts against a node', async () => {
  const { contracts, unreadable, honest } = await runContracts({ rounds: 12, seed: 1 })
  expect(contracts).toBeGreaterThan(25)
  expect(unreadable).toBeGreaterThan(40)
  expect(honest).toBe(8)
}, 300_000)
