import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'

const database = await freshDatabase()
const { startBench, settled } = createTrackedBenches(database)

describe('what is removed while its balance is being read', () => {
  it.each(['RemoveContract', 'RemoveAddress'])('by %s leaves no balance', async (operation) => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account, address } = bench
    const asset = {
      asset_type: 'ASSET_TYPE_ERC20' as const,
      contract_address: account(77),
      token_id: 0n,
    }
    chain.addToken(account(77), 'CONTRACT_TYPE_ERC20')
    const contract = { contract_address: address(77) }
    await caller.call('RegisterContract', { ...contract, contract_type: 'CONTRACT_TYPE_ERC20' })
    const { wallet_id } = await caller.call('RegisterWallet', {
      name: 'w',
      address: address(1),
      confirmation: 1,
    })
    start()
    await settled(bench)

    let asked = 0
    const { readBalances } = chain
    const gate = Promise.withResolvers<void>()
    chain.readBalances = async (...question) => {
      asked++
      await gate.promise
      return await readBalances(...question)
    }
    chain.mine([{ movements: [{ to: account(1), value: 5n, asset }] }])
    await waitFor('the balance is asked for', () => asked > 0)
    await caller.call(
      operation,
      operation === 'RemoveContract' ? contract : { wallet_id, address: address(1) },
    )
    gate.resolve()
    chain.mine()
    await settled(bench)
    await waitFor('nothing is left to do', async () => {
      const { rows } = await database.pool.query(
        'select 1 from balance_change where network_id = $1',
        [bench.network_id],
      )
      return rows.length === 0
    })
    const list = { wallet_id, asset_type: 'ASSET_TYPE_ERC20' }
    expect((await caller.call('ListAssets', list)).assets).toEqual([])
  })
})
