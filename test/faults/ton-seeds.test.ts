import { expect, it } from 'vitest'
import { runTonSeed } from './ton-seeds.ts'

it.each([101])(
  'every transfer on TON is seen once through splits, merges and bad nodes (seed %s)',
  async (seed) => {
    const { transfers, bounces, mostShards, tokenMovements } = await runTonSeed(seed)
    expect(tokenMovements).toBeGreaterThan(20)
    expect(transfers).toBeGreaterThan(200)
    expect(bounces).toBeGreaterThan(10)
    expect(mostShards).toBeGreaterThan(1)
  },
  120_000,
)
