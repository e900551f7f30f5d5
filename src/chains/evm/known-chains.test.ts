import { expect, test } from 'vitest'
import {
  blockTimeOf,
  findKnownChain,
  knownChainNames,
  proposedConfirmations,
  proposedSettings,
} from './known-chains.ts'

test.each([
  [1, 'ethereum/mainnet', 'ETH', 12_000, 12],
  [8_453, 'base/mainnet', 'ETH', 2_000, 72],
  [84_532, 'base/sepolia', 'ETH', 2_000, 72],
  [11_155_111, 'ethereum/sepolia', 'ETH', undefined, undefined],
  [42_161, 'arbitrum/mainnet', 'ETH', 250, 576],
  [137, 'polygon/mainnet', 'POL', 2_000, 72],
])('chain %i is %s', (id, place, symbol, blockMs, confirmations) => {
  const known = findKnownChain(id)!
  expect([`${known.chain}/${known.network}`, known.symbol]).toEqual([place, symbol])
  expect([blockTimeOf(id), proposedConfirmations(known)]).toEqual([blockMs, confirmations])
})

test('the stacks whose blocks cannot be proved whole, or whose coin is a token as well, get their settings', () => {
  const settings = (id: number) => proposedSettings(findKnownChain(id)!)
  expect(settings(1)).toEqual({})
  expect(settings(10)).toEqual({})
  const celo = { unproven_types: [0x7b], coin_contract: expect.stringMatching(/^0x471ece/) }
  expect(settings(42_220)).toEqual(celo)
  expect(settings(11_142_220)).toEqual(celo)
  expect(settings(44_787).coin_contract).toMatch(/^0xf194af/)
  expect(settings(137)).toEqual({ unproven_types: [0x7f] })
  expect(settings(2_818)).toEqual({ unproven_types: [0x7f] })
  for (const id of [42_161, 42_170, 660_279, 33_139])
    expect(settings(id).unproven_types).toContain(0x6a)
  // What they have of their own is proved.
  for (const id of [5_000, 534_352, 255]) expect(settings(id)).toEqual({})
  expect(settings(324)).toEqual({ proof: 'bloom' })
  expect(settings(43_114)).toEqual({ proof: 'bloom' })
})

test('names are those of the configuration', () => {
  const names = knownChainNames()
  expect(names.size).toBeGreaterThan(300)
  for (const name of names) expect(name).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
  for (const name of ['ethereum', 'base', 'polygon', 'bsc', 'arbitrum', 'optimism', 'gnosis'])
    expect(names).toContain(name)
})
