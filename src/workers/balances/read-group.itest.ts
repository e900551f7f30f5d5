import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'

const database = await freshDatabase()
const { startBench, settled } = createTrackedBenches(database)
const asset_type = 'ASSET_TYPE_S' as const

it.each([
  ['read by the tracker', { confirmation: 1, isRequested: false }],
  ['read by the tracker, of a deep wallet', { confirmation: 6, isRequested: false }],
  ['read on request', { confirmation: 1, isRequested: true }],
  ['read on request, of a deep wallet', { confirmation: 6, isRequested: true }],
])(
  'a balance that cannot be %s is no baseline for net changes',
  async (_, { confirmation, isRequested }) => {
    const { bench, caller, start } = await startBench('s')
    const { chain, account, address, family } = bench
    const parsed = family.parseToken!('0x5::coral::CORAL')
    if (!parsed.ok) throw new Error(parsed.detail)
    const asset = { asset_type, contract_address: parsed.bytes, token_id: 0n }
    chain.addToken(parsed.bytes, 'token', { decimals: 6 })
    const token_address = family.formatToken!(parsed.bytes)
    let refused = 0
    const { readBalances } = chain
    chain.readBalances = async (queries, ...rest) =>
      (await readBalances(queries, ...rest)).map((reading, at) => {
        if (queries[at]!.asset.contract_address.length === 0) return reading
        refused++
        return { ...reading, balance: null }
      })
    const pay = (from: number, to: number, value: bigint) =>
      chain.mine([{ movements: [{ from: account(from), to: account(to), value, asset }] }])
    // Before tracking begins, so that no net change holds it.
    chain.mine([{ movements: [{ to: account(1), value: 1_000n, asset }] }])
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation })
    const tracker = start()
    await waitFor('tracking has begun', () => tracker.status().block_number === 1)
    await caller.call('ImportAsset', { wallet_id, asset_type, token_address })
    await caller.call('RegisterAddress', { wallet_id, address: address(1) })
    const shown = async (): Promise<string | undefined> => {
      const { assets } = await caller.call('ListAssets', { wallet_id, asset_type, token_address })
      return assets[0]?.balance
    }
    const readOnRequest = async () => {
      const request = { wallet_id, address: address(1), asset_type, token_address }
      await caller.call('ImportAsset', request)
    }
    pay(2, 1, 50n)
    if (isRequested) await readOnRequest()
    for (let i = 0; i < confirmation; i++) chain.mine()
    await waitFor('it was refused', () => refused > 0)
    pay(1, 2, 300n)
    for (let i = 0; i < confirmation; i++) chain.mine()
    await waitFor('all blocks', () => tracker.status().block_number === chain.newest())
    expect(await shown()).toBeUndefined()
    chain.readBalances = readBalances
    if (isRequested) await readOnRequest()
    pay(2, 1, 7n)
    // Beyond the pause of postponed work.
    for (let i = 0; i < 30; i++) chain.mine()
    await settled(bench)
    expect(await shown()).toBe('757')
    pay(1, 2, 1n)
    for (let i = 0; i < 8; i++) chain.mine()
    await settled(bench)
    expect(await shown()).toBe('756')
  },
)
