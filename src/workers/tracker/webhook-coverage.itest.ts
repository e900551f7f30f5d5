import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import type { Caller } from '../../../test/helpers/wallets.ts'
import type { WalletService } from '../../contract/variant.ts'

const database = await freshDatabase()
const { startBench, settled, notified } = createTrackedBenches(database)

const register = async (caller: Caller, fields: object = {}): Promise<string> =>
  (
    await caller.call('RegisterWebhook', {
      webhook_endpoint: 'https://receiver.invalid',
      confirmation: 1,
      ...fields,
    })
  ).webhook_id

describe.each<WalletService>(['t', 's', 'p', 'c'])('webhooks of %s', (service) => {
  it('are notified of their wallet, or of all wallets of the organization, and of nothing else', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    const wallet = async (by: Caller, name: string, at: string): Promise<string> =>
      (await by.call('RegisterWallet', { name, address: at })).wallet_id
    const stranger = await bench.createCaller()
    const first = await wallet(caller, 'first', address(1))
    await caller.call('RegisterAddress', { wallet_id: first, address: address(4) })
    const second = await wallet(caller, 'second', address(2))
    await wallet(stranger, 'theirs', address(3))
    const hooks = {
      first: await register(caller, { wallet_id: first }),
      second: await register(caller, { wallet_id: second }),
      all: await register(caller),
      theirs: await register(stranger),
    }
    start()
    await settled(bench)
    chain.mine([
      {
        movements: [
          { from: account(9), to: account(1), value: 7n },
          { from: account(9), to: account(2), value: 8n },
          { from: account(9), to: account(5), value: 6n },
        ],
      },
      { movements: [{ from: account(9), to: account(4), value: 5n }] },
    ])
    await settled(bench)
    const values = async (webhook_id: string) =>
      (await notified(webhook_id)).map(({ data }) =>
        data.transfers.map((one: { wallet_id: string; value: string }) => [
          one.wallet_id,
          one.value,
        ]),
      )
    expect(await values(hooks.first)).toEqual([[[first, '7']], [[first, '5']]])
    expect(await values(hooks.second)).toEqual([[[second, '8']]])
    expect(await values(hooks.all)).toEqual([
      [
        [first, '7'],
        [second, '8'],
      ],
      [[first, '5']],
    ])
    expect(await values(hooks.theirs)).toEqual([])
  })

  it('are not notified of transfers before their registration', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    start()
    await settled(bench)
    chain.mine([{ movements: [{ from: account(9), to: account(1), value: 7n }] }])
    await settled(bench)
    const late = await register(caller, { confirmation: 3 })
    const [gone, stays] = [await register(caller), await register(caller)]
    await caller.call('RemoveWebhook', { webhook_id: gone })
    chain.mine([{ movements: [{ from: account(9), to: account(1), value: 8n }] }])
    for (let more = 0; more < 3; more++) chain.mine()
    await settled(bench)
    const valuesOf = async (webhook_id: string) =>
      (await notified(webhook_id)).flatMap(({ data }) =>
        data.transfers.map((one: { value: string }) => one.value),
      )
    expect(await valuesOf(late)).toEqual(['8'])
    expect(await valuesOf(stays)).toEqual(['8'])
    expect(await valuesOf(gone)).toEqual([])
  })
})
