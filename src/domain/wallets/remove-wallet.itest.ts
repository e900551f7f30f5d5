import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches, listAll } from '../../../test/helpers/tracked-harness.ts'
import type { WalletService } from '../../contract/variant.ts'

const database = await freshDatabase()
const { startBench, settled, addWebhook, notified } = createTrackedBenches(database)
const webhook_endpoint = 'https://receiver.invalid/hook'

describe.each<WalletService>(['t', 's', 'p', 'c'])('a wallet of %s', (service) => {
  it('that is removed is not listed or tracked, and its history stays', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    const { call, reason } = caller
    const { wallet_id } = await call('RegisterWallet', { name: 'w', address: address(1) })
    const { wallet_id: kept } = await call('RegisterWallet', { name: 'k', address: address(2) })
    const hook = { wallet_id, webhook_endpoint, confirmation: 1 }
    const { webhook_id } = await call('RegisterWebhook', hook)
    const slow = await addWebhook(bench, caller, 4)
    start()
    await settled(bench)
    const pay = async (value: bigint) => {
      chain.mine([
        { movements: [1, 2].map((at) => ({ from: account(9), to: account(at), value })) },
      ])
      await settled(bench)
    }
    await pay(5n)
    const before = await listAll(caller, { wallet_id })
    expect(before).toHaveLength(1)
    for (let times = 0; times < 2; times++)
      expect(await call('RemoveWallet', { wallet_id })).toEqual({})

    await pay(6n)
    for (let left = 0; left < 4; left++) chain.mine()
    await settled(bench)
    const { asset_type } = chain.native
    expect((await call('ListWallets')).wallets).toMatchObject([{ wallet_id: kept }])
    for (const [operation, request] of [
      ['GetWallet', { wallet_id }],
      ['RegisterAddress', { wallet_id, address: address(3) }],
      ['BatchRegisterAddresses', { wallet_id, addresses: [address(3)] }],
      ['RenameWallet', { wallet_id, name: 'x' }],
      ['ListAssets', { wallet_id, asset_type }],
      ['RefreshAssetBalances', { wallet_id, asset_type }],
      ['RegisterWebhook', hook],
      ['ListWebhooks', { wallet_id }],
      ...(service === 'c' || service === 's'
        ? ([['UpdateConfirmation', { wallet_id, confirmation: 2 }]] as const)
        : []),
    ] as const)
      expect(await reason(operation, request), operation).toBe('WALLET_NOT_FOUND')
    expect((await call('ListWebhooks')).webhooks.map((one: Hook) => one.webhook_id)).toEqual([slow])
    const { webhook_histories } = await call('ListWebhookHistories', { webhook_id })
    expect(webhook_histories).toMatchObject([{ webhook_status: 'WEBHOOK_STATUS_FAILED' }])

    // The history of the wallet, and a webhook of all wallets that had a pending notification of it.
    const value = ({ value }: { value: string }) => value
    expect((await listAll(caller, { wallet_id })).map(value)).toEqual(['5'])
    expect((await listAll(caller, { wallet_id: kept })).map(value)).toEqual(['6', '5'])
    const wallets = (await notified(slow)).flatMap(({ data }) =>
      data.transfers.map((one: { wallet_id: string; value: string }) => [one.wallet_id, one.value]),
    )
    expect(wallets.sort()).toEqual(
      [
        [wallet_id, '5'],
        [kept, '5'],
        [kept, '6'],
      ].sort(),
    )
    // Its address is free.
    await call('RegisterAddress', { wallet_id: kept, address: address(1) })
  })

  it('of another organization is like none', async () => {
    const { bench, caller } = await startBench(service)
    const stranger = await bench.createCaller()
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
    for (const id of [wallet_id, randomUUID(), 'x']) {
      expect(await stranger.call('RemoveWallet', { wallet_id: id })).toEqual({})
      const rename = { wallet_id: id, name: 'mine' }
      expect(await stranger.reason('RenameWallet', rename)).toBe('WALLET_NOT_FOUND')
    }
    expect((await caller.call('GetWallet', { wallet_id })).wallet.name).toBe('w')
    expect(await caller.call('RenameWallet', { wallet_id, name: 'other' })).toEqual({})
    const { wallet } = await caller.call('GetWallet', { wallet_id })
    expect(wallet.name).toBe('other')
    expect(await caller.reason('RenameWallet', { wallet_id, name: '' })).toBe('INVALID_REQUEST')
  })

  it('ignores concurrent additions while it is removed', async () => {
    const { bench, caller } = await startBench(service)
    for (let round = 0; round < 5; round++) {
      const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
      const hook = { wallet_id, webhook_endpoint, confirmation: 1 }
      const adding = [
        ...[1, 2, 3].map((at) => ['RegisterAddress', { wallet_id, address: bench.address(at) }]),
        ...[1, 2, 3].map(() => ['RegisterWebhook', hook]),
      ] as [string, object][]
      adding.splice(round, 0, ['RemoveWallet', { wallet_id }])
      const reasons = await Promise.all(
        adding.map(([operation, request]) => caller.reason(operation, request)),
      )
      expect(['OK', 'WALLET_NOT_FOUND']).toEqual(expect.arrayContaining([...new Set(reasons)]))
      const { rows } = await database.pool.query(
        `select 1 from wallet_address where wallet_id = $1
         union all select 1 from webhook where wallet_id = $1`,
        [wallet_id],
      )
      expect(rows).toEqual([])
    }
  })
})

type Hook = { webhook_id: string }
