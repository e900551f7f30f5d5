import { describe, expect, it } from 'vitest'
import { startPolkadotDevChain } from '../../../devnet/polkadot/node.ts'
import { formatAddress } from '../../../src/chains/polkadot/address.ts'
import { startTestApp } from '../../helpers/app.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { testRuntimes } from './runtimes.ts'

const worlds = await Promise.all(
  testRuntimes().map(async ({ name, spec }) => {
    const node = await startPolkadotDevChain({ manual: true, finality: 1, ...(spec && { spec }) })
    node.mine(2)
    const service = await startTestApp({
      config: {
        chains: {
          p: {
            kind: 'polkadot',
            default_network: 'mainnet',
            networks: {
              mainnet: { upstreams: [{ url: node.node_url, headers: {}, priority: 0 }] },
            },
          },
        },
      },
    })
    const { member } = await service.createTenant(-1)
    return { name, node, service, member }
  }),
)

describe.each(worlds)('variant P through the service on $name', ({ node, service, member }) => {
  const call = async (operation: string, body: object) => {
    const { status, json } = await service.call(member, `p/${operation}`, body)
    if (status !== 200) throw new Error(`${operation}: ${status} ${JSON.stringify(json)}`)
    return json
  }
  const addressOf = (number: number) => node.address(node.signer(number).account)
  const coin = { asset_type: 'ASSET_TYPE_P' }
  const sign = (from: number, to: number, value: bigint) => {
    const dest = { type: 'Id', value: addressOf(to) }
    const call = { pallet: 'Balances', call: node.transferCall, value: { dest, value } }
    return node.sign({ signer: node.signer(from), ...call })
  }
  const pay = (from: number, to: number, value: bigint) =>
    node.make({ extrinsics: [sign(from, to, value)] })
  const tracked = async (): Promise<number | null> => {
    const { json } = await service.admin('/status')
    return json.chains.p.tracking.block_number
  }
  const atHead = () =>
    waitFor(
      'the tracker is at the head',
      async () => (await tracked()) === node.chain.final().number,
    )
  const balanceOf = async (address: string) =>
    (await call('ListAssets', { address, ...coin })).assets[0]?.balance

  it('tracks a wallet from its registration: transfers, balances, aggregation', async () => {
    await waitFor('the tracker stores blocks', async () => {
      node.mine(1)
      return (await tracked()) !== null
    })
    await atHead()
    const { wallet_id } = await call('RegisterWallet', { name: 'cold', address: addressOf(100) })
    await call('RegisterAddress', { wallet_id, address: addressOf(101) })
    expect((await call('GetWallet', { address: addressOf(101) })).wallet.wallet_id).toBe(wallet_id)
    const hash = await node.fund(addressOf(100), 5n * 10n ** 12n)
    node.mine(1)
    await waitFor('the transfer', async () => {
      const { transfers } = await call('ListTransfers', { wallet_id })
      return transfers.length === 1
    })
    const { transfers } = await call('ListTransfers', { transaction_hash: hash })
    const block = node.chain.at(node.chain.best().number - 1)!
    expect(transfers).toEqual([
      {
        transaction_hash: hash,
        asset_type: 'ASSET_TYPE_P',
        from: node.funder_address,
        to: addressOf(100),
        value: '5000000000000',
        transaction_fee: expect.stringMatching(/^[1-9]\d+$/),
        block_height: block.number,
        block_timestamp: expect.any(Number),
        block_number: block.number,
        position: expect.any(Number),
        token_address: '',
        transfer_id: expect.any(String),
        wallet_id,
        direction: 'TRANSFER_DIRECTION_INCOMING',
        fee_paid: '0',
        transfer_time: expect.stringMatching(/Z$/),
      },
    ])
    await waitFor('the balance', async () => (await balanceOf(addressOf(100))) === '5000000000000')
    pay(100, 101, 10n ** 12n)
    node.mine(1)
    await waitFor('both ends', async () => (await balanceOf(addressOf(101))) === '1000000000000')
    const all = await call('ListTransfers', { wallet_id })
    expect(all.transfers.map(({ value }: { value: string }) => value)).toEqual([
      '1000000000000',
      '5000000000000',
    ])
    const fee = BigInt(all.transfers[0].transaction_fee)
    await waitFor('the payer', async () => {
      const left = 4n * 10n ** 12n - fee
      return (await balanceOf(addressOf(100))) === left.toString()
    })
    const sum = await call('ListAssets', { wallet_id, ...coin, is_aggregated: true })
    expect(sum.assets).toEqual([
      {
        ...{ wallet_id, address: '', ...coin, token_address: '' },
        balance: (5n * 10n ** 12n - fee).toString(),
      },
    ])
  })

  it('reads earlier balances, by import_asset and ImportAsset', async () => {
    await node.fund(addressOf(110), 7n * 10n ** 12n)
    await node.fund(addressOf(111), 8n * 10n ** 12n)
    node.mine(1)
    await atHead()
    const wallet = { name: 'old', address: addressOf(110), import_asset: true }
    const { wallet_id } = await call('RegisterWallet', wallet)
    expect(await balanceOf(addressOf(110))).toBe('7000000000000')
    await call('RegisterAddress', { wallet_id, address: addressOf(111) })
    expect((await call('ListAssets', { address: addressOf(111), ...coin })).assets).toEqual([])
    await call('ImportAsset', { address: addressOf(111), ...coin })
    expect(await balanceOf(addressOf(111))).toBe('8000000000000')
    expect((await call('ListTransfers', { wallet_id })).transfers).toEqual([])
    await call('RefreshAssetBalances', { wallet_id, ...coin })
    expect(await balanceOf(addressOf(110))).toBe('7000000000000')
  })

  it('knows one account by every form of its address, and prints that of the chain', async () => {
    const { account } = node.signer(120)
    const id = `0x${Buffer.from(account).toString('hex')}`
    const { wallet_id } = await call('RegisterWallet', { name: 'forms', address: id })
    const prefixed = (prefix: number) => formatAddress(account, prefix)
    for (const address of [id, prefixed(0), prefixed(2), prefixed(42), prefixed(1284)])
      expect((await call('GetWallet', { address })).wallet.wallet_id).toBe(wallet_id)
    await node.fund(addressOf(120), 10n ** 12n)
    node.mine(1)
    await waitFor('the balance', async () => (await balanceOf(id)) === '1000000000000')
    const { assets } = await call('ListAssets', { wallet_id, ...coin })
    expect(assets[0].address).toBe(prefixed(node.ss58_prefix))

    const ethereum = `0x${'ab'.repeat(20)}`
    await call('RegisterAddress', { wallet_id, address: ethereum })
    await node.fund(`${ethereum}${'ee'.repeat(12)}`, 10n ** 12n)
    node.mine(1)
    await waitFor('the mapped account', async () => (await balanceOf(ethereum)) === '1000000000000')
  })

  it('notifies a webhook when the transfer has the required number of final blocks', async () => {
    const { wallet_id } = await call('RegisterWallet', {
      name: 'notified',
      address: addressOf(130),
    })
    const { webhook_id } = await call('RegisterWebhook', {
      wallet_id,
      webhook_endpoint: 'https://localhost:9443/closed-port',
      confirmation: 3,
    })
    const histories = async () =>
      (await call('ListWebhookHistories', { webhook_id })).webhook_histories
    const transaction_hash = await node.fund(addressOf(130), 10n ** 12n)
    const { number } = node.chain.best()
    // The newest block is not final yet, so that these make two final ones of it.
    node.mine(2)
    expect(node.chain.final().number).toBe(number + 1)
    await atHead()
    expect((await call('ListTransfers', { wallet_id })).transfers).toHaveLength(1)
    expect(await histories()).toEqual([])
    node.mine(1)
    await waitFor('the notification', async () => (await histories()).length === 1)
    const [history] = await histories()
    expect(history.notification_type).toBe('NOTIFICATION_TYPE_P_TRANSACTION_UPDATED')
    const { transfers } = await call('ListTransfers', { transaction_hash })
    expect(history.data).toMatchObject({
      transaction_hash,
      confirmations: 3,
      transfers: [{ wallet_id, ...transfers[0] }],
    })
  })

  it('never shows a transfer of a branch that was lost before it was final', async () => {
    const { wallet_id } = await call('RegisterWallet', { name: 'fork', address: addressOf(140) })
    const [lost, won] = [1, 2].map((from) => sign(from, 140, BigInt(from) * 10n ** 12n))
    node.make({ extrinsics: [lost!] })
    node.fork(1, [won!])
    node.mine(1)
    await atHead()
    await waitFor('the balance', async () => (await balanceOf(addressOf(140))) === '2000000000000')
    const { transfers } = await call('ListTransfers', { wallet_id })
    expect(transfers.map(({ value }: { value: string }) => value)).toEqual(['2000000000000'])
  })

  it('refuses an invalid address and names the field', async () => {
    const { wallet_id } = await call('RegisterWallet', { name: 'strict' })
    const good = addressOf(1)
    const bad = [
      '',
      'x',
      `${good.slice(0, -1)}${good.endsWith('1') ? '2' : '1'}`,
      good.slice(1),
      `0x${'AB'.repeat(20)}`,
      `0x${'ab'.repeat(31)}`,
      'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq',
    ]
    for (const address of bad) {
      const { status, json } = await service.call(member, 'p/RegisterAddress', {
        wallet_id,
        address,
      })
      expect([address, status, json.errors?.[0]?.field]).toEqual([address, 400, 'address'])
    }
    const unknown = await service.call(member, 'p/ImportAsset', { address: good, ...coin })
    expect([unknown.status, unknown.json.reason]).toEqual([404, 'ADDRESS_NOT_FOUND'])
  })

  it('prints addresses the same without nodes, and after the chain was removed', async () => {
    const { wallet_id } = await call('RegisterWallet', { name: 'kept', address: addressOf(150) })
    await node.fund(addressOf(150), 10n ** 12n)
    node.mine(1)
    await waitFor('the balance', async () => (await balanceOf(addressOf(150))) === '1000000000000')
    const read = async (from: typeof service) => {
      const { json } = await from.call(member, 'p/ListTransfers', { wallet_id })
      return json.transfers?.map(({ from, to }: { from: string; to: string }) => [from, to])
    }
    const before = await read(service)
    expect(before).toEqual([[node.funder_address, addressOf(150)]])
    const networks = {
      mainnet: { upstreams: [{ url: 'ws://127.0.0.1:1', headers: {}, priority: 0 }] },
    }
    const other = await startTestApp({
      beside: service,
      config: { chains: { p: { kind: 'polkadot', default_network: 'mainnet', networks } } },
    })
    expect(await read(other)).toEqual(before)
    await other.stop()
    expect(await service.reload({ chains: {} })).toMatchObject({ removed: ['p/mainnet'] })
    expect(await read(service)).toEqual(before)
  })
})
