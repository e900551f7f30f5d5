import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches, listAll } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'

const database = await freshDatabase()
const { startBench, settled, addWebhook, notified } = createTrackedBenches(database)

describe('confirmations in c', () => {
  const begin = async (wallet: number, ...webhooks: number[]) => {
    const setup = await startBench('c')
    const { bench, caller, start } = setup
    const { chain, account, address } = bench
    const { wallet_id } = await caller.call('RegisterWallet', {
      name: 'w',
      address: address(1),
      confirmation: wallet,
    })
    const ids: string[] = []
    for (const confirmation of webhooks) ids.push(await addWebhook(bench, caller, confirmation))
    const tracker = start()
    await settled(bench)
    const mine = async (count: number) => {
      for (let left = count; left > 0; left--) {
        chain.mine()
        await settled(bench)
      }
    }
    const pay = async (to: number) => {
      chain.mine([{ movements: [1, to].map((at) => ({ to: account(at), value: BigInt(at) })) }])
      await settled(bench)
    }
    const update = async (confirmation: number, id = wallet_id) =>
      await caller.call('UpdateConfirmation', { wallet_id: id, confirmation })
    const says = async (webhook_id: string) =>
      (await notified(webhook_id)).map(({ data }) => [
        data.confirmations,
        ...data.transfers.map((one: { transfer_state: string }) => one.transfer_state.slice(15)),
      ])
    const states = async () =>
      (await listAll(caller, { wallet_id })).map(({ transfer_state }) => transfer_state.slice(15))
    return { ...setup, wallet_id, ids, mine, pay, update, says, states, tracker }
  }

  it('a webhook with fewer confirmations than its wallet ends with SUCCESS', async () => {
    const { ids, mine, pay, says } = await begin(4, 2, 4, 6)
    await pay(9)
    await mine(6)
    expect(await says(ids[0]!)).toEqual([
      [2, 'PENDING'],
      [4, 'SUCCESS'],
    ])
    expect(await says(ids[1]!)).toEqual([[4, 'SUCCESS']])
    expect(await says(ids[2]!)).toEqual([[6, 'SUCCESS']])
  })

  it('a transaction of two wallets is notified as each of them confirms it', async () => {
    const { bench, caller, ids, mine, pay, says } = await begin(5, 1)
    await caller.call('RegisterWallet', { name: 'w', address: bench.address(2), confirmation: 3 })
    await pay(2)
    await mine(6)
    expect(await says(ids[0]!)).toEqual([
      [1, 'PENDING', 'PENDING'],
      [3, 'PENDING', 'SUCCESS'],
      [5, 'SUCCESS', 'SUCCESS'],
    ])
  })

  it('a higher confirmation keeps confirmed transfers, and delays the others', async () => {
    const { ids, mine, pay, says, states, update } = await begin(2, 1)
    await pay(9)
    await mine(1)
    await pay(9)
    expect(await states()).toEqual(['PENDING', 'SUCCESS'])
    await update(5)
    expect(await states()).toEqual(['PENDING', 'SUCCESS'])
    await mine(3)
    expect(await states()).toEqual(['PENDING', 'SUCCESS'])
    await mine(1)
    expect(await states()).toEqual(['SUCCESS', 'SUCCESS'])
    expect(await says(ids[0]!)).toEqual([
      [1, 'PENDING'],
      [2, 'SUCCESS'],
      [1, 'PENDING'],
      [5, 'SUCCESS'],
    ])
  })

  it('what was confirmed before more was asked for is pending again on another branch', async () => {
    const { bench, ids, mine, pay, says, states, update } = await begin(1, 1)
    const { chain, account } = bench
    await pay(9)
    await mine(1)
    await update(4)
    expect(await states()).toEqual(['SUCCESS'])
    chain.reorganize(2, [[{ movements: [{ to: account(1), value: 7n }] }], [], []])
    await settled(bench)
    expect(await states()).toEqual(['PENDING'])
    await mine(1)
    expect(await states()).toEqual(['SUCCESS'])
    expect(await says(ids[0]!)).toEqual([
      [1, 'SUCCESS'],
      [0, 'REORGED'],
      [3, 'PENDING'],
      [4, 'SUCCESS'],
    ])
  })

  it('fewer confirmations later are notified with the next block', async () => {
    const { ids, mine, pay, says, update } = await begin(9, 1)
    await pay(9)
    await mine(2)
    await update(2)
    await mine(1)
    expect(await says(ids[0]!)).toEqual([
      [1, 'PENDING'],
      [4, 'SUCCESS'],
    ])
  })

  it('a change of confirmation applies to waiting notifications', async () => {
    const { caller, ids, mine, pay, says } = await begin(1, 6)
    await pay(9)
    await caller.call('UpdateWebhook', { webhook_id: ids[0], confirmation: 2 })
    await pay(9)
    await caller.call('UpdateWebhook', { webhook_id: ids[0], confirmation: 4 })
    await mine(5)
    expect(await says(ids[0]!)).toEqual([
      [2, 'SUCCESS'],
      [4, 'SUCCESS'],
    ])
  })

  it('transfers and states of transactions go to the webhooks that want them', async () => {
    const { bench, caller, ids, pay, wallet_id } = await begin(1, 1)
    const register = async (event: string) =>
      (
        await caller.call('RegisterWebhook', {
          webhook_endpoint: 'https://receiver.invalid/hook',
          confirmation: 1,
          events: [event],
        })
      ).webhook_id
    const transfers = await register('WEBHOOK_EVENT_TRANSFER')
    const states = await register('WEBHOOK_EVENT_TRANSACTION_STATE')
    const from = bench.address(1)
    await caller.call('CreateTransaction', { wallet_id, from, to: from, value: '1' })
    await pay(9)
    const kinds = async (id: string) =>
      (await notified(id)).map(({ data }) => (data.transaction ? 'state' : 'transfer'))
    expect(await kinds(ids[0]!)).toEqual(['state', 'transfer'])
    expect(await kinds(transfers)).toEqual(['transfer'])
    expect(await kinds(states)).toEqual(['state'])
  })

  it('a long description of an item is left out of notifications, and listed', async () => {
    const { bench, caller, ids, says, wallet_id } = await begin(1, 1)
    const { chain, account, address } = bench
    chain.addToken(account(77), 'CONTRACT_TYPE_ERC721')
    const contract = { contract_address: address(77), contract_type: 'CONTRACT_TYPE_ERC721' }
    await caller.call('RegisterContract', contract)
    const give = async (token_id: bigint) => {
      const asset = {
        asset_type: 'ASSET_TYPE_ERC721' as const,
        contract_address: account(77),
        token_id,
      }
      chain.mine([{ movements: [{ to: account(1), value: 1n, asset }] }])
      await settled(bench)
    }
    await give(1n)
    const texts = { long: `"${'ä'.repeat(130_000)}"`, short: `"${'x'.repeat(4_094)}"` }
    await database.pool.query(
      `update asset set token_data = $2, token_uri = $3 where network_id = $1 and token_id = 1`,
      [bench.network_id, texts.long, texts.short],
    )
    await give(1n)
    const [first, second] = (await notified(ids[0]!)).map(
      ({ data }) => data.transfers[0].transfer_metadata.erc721,
    )
    expect(first).toMatchObject({ token_uri: '', token_data: '' })
    expect(first).not.toHaveProperty('token_data_omitted')
    expect(second).toMatchObject({
      token_uri: texts.short,
      token_data: '',
      token_data_omitted: true,
    })
    expect(second).not.toHaveProperty('token_uri_omitted')
    const [listed] = await listAll(caller, { wallet_id })
    expect(listed.transfer_metadata.erc721.token_data).toBe(texts.long)
    expect(listed.transfer_metadata.erc721).not.toHaveProperty('token_data_omitted')
    expect((await says(ids[0]!)).length).toBe(2)
  })

  it('many notifications of many transfers are released page by page', {
    timeout: 120_000,
  }, async () => {
    const { bench, caller, says, ids } = await begin(1, 1, 1, 1, 1, 1, 1)
    const { chain, account, address } = bench
    const addresses = Array.from({ length: 40 }, (_, at) => address(100 + at))
    await caller.call('RegisterWallet', { name: 'x', address: address(99), confirmation: 1 })
    const { wallets } = await caller.call('ListWallets')
    await caller.call('BatchRegisterAddresses', { wallet_id: wallets[1].wallet_id, addresses })
    const many = addresses.map((_, at) => ({ to: account(100 + at), value: 1n }))
    chain.mine(Array.from({ length: 150 }, () => ({ movements: many })))
    await waitFor(
      'all of them are released',
      async () => {
        const { rows } = await database.pool.query(
          'select count(*)::int4 as count from delivery where network_id = $1 and sequence is not null',
          [bench.network_id],
        )
        return rows[0].count === 6 * 150
      },
      { timeoutMs: 100_000 },
    )
    for (const id of ids) {
      const all = await says(id)
      expect(all.every((one) => one.length === 41)).toBe(true)
    }
  })
})
