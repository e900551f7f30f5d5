import { afterAll, expect, it } from 'vitest'
import { startTestApp } from '../../helpers/app.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { startHarness } from './harness.ts'

const node = await startHarness({ finality: 1 })
node.mine(2)
const service = await startTestApp({
  config: {
    chains: {
      p: {
        kind: 'polkadot',
        default_network: 'mainnet',
        networks: { mainnet: { upstreams: [{ url: node.node_url, headers: {}, priority: 0 }] } },
      },
    },
  },
})
afterAll(node.stop)
const { member } = await service.createTenant(-1)
const call = async (operation: string, body: object) => {
  const { status, json } = await service.call(member, `p/${operation}`, body)
  if (status !== 200) throw new Error(`${operation}: ${status} ${JSON.stringify(json)}`)
  return json
}
const coin = { asset_type: 'ASSET_TYPE_P' }
const id = 1984
const token_address = `${id}`
const addressOf = (number: number) => node.to(number).value
const asset = (from: number, name: string, value: object, nonce?: number) =>
  node.signed(from, 'Assets', name, { id, ...value }, nonce)
const balanceOf = async (number: number) =>
  (await call('ListAssets', { address: addressOf(number), ...coin, token_address })).assets[0]
    ?.balance
const tracked = async (): Promise<number | null> =>
  (await service.admin('/status')).json.chains.p.tracking.block_number

it('tracks tokens of the pallet Assets: mints, transfers, burns and balances', async () => {
  await waitFor('the tracker stores blocks', async () => {
    node.mine(1)
    return (await tracked()) !== null
  })
  const name = new TextEncoder().encode('Tether USD')
  const symbol = new TextEncoder().encode('USDT')
  const minted = node.make({
    extrinsics: [
      asset(1, 'create', { admin: node.to(1), min_balance: 1n }, 0),
      asset(1, 'set_metadata', { name, symbol, decimals: 6 }, 1),
      asset(1, 'mint', { beneficiary: node.to(2), amount: 1_000n }, 2),
    ],
  })
  node.mine(1)
  // A mint in a block that is tracked after the registration would be a fourth record.
  await waitFor(
    'the mint is before the registration',
    async () => ((await tracked()) ?? 0) >= minted.number,
  )
  const { wallet_id } = await call('RegisterWallet', { name: 'tokens', address: addressOf(2) })
  await call('RegisterAddress', { wallet_id, address: addressOf(3) })
  const unknown = await service.call(member, 'p/ImportAsset', {
    ...{ address: addressOf(2), ...coin, token_address: '7' },
  })
  expect(unknown).toMatchObject({ status: 400 })
  expect(JSON.stringify(unknown.json)).toContain('The chain has no such asset.')
  // For all addresses of the wallet, those that come later included.
  await call('ImportAsset', { wallet_id, ...coin, token_address })
  await waitFor('the balance that was there', async () => (await balanceOf(2)) === '1000')

  const sent = asset(2, 'transfer', { target: node.to(3), amount: 300n })
  node.make({ extrinsics: [sent] })
  node.make({
    extrinsics: [
      asset(1, 'mint', { beneficiary: node.to(3), amount: 50n }),
      asset(1, 'burn', { who: node.to(2), amount: 20n }, 4),
    ],
  })
  node.mine(1)
  await waitFor(
    'both balances',
    async () => (await balanceOf(2)) === '680' && (await balanceOf(3)) === '350',
  )
  const { transfers } = await call('ListTransfers', { wallet_id, page_size: 100 })
  const ofToken = transfers.filter((one: { token_address: string }) => one.token_address !== '')
  expect(ofToken).toHaveLength(3)
  expect(ofToken).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        ...{ from: addressOf(2), to: addressOf(3), value: '300', token_address },
        ...{ transaction_hash: node.hashOf(sent), fee_paid: '0' },
      }),
      expect.objectContaining({
        ...{ from: '', to: addressOf(3), value: '50', token_address },
        detail: { source: 'extrinsic', event: 'Assets.Issued', pallet: 'Assets' },
      }),
      expect.objectContaining({
        ...{ from: addressOf(2), to: '', value: '20', token_address },
        detail: { source: 'extrinsic', event: 'Assets.Burned', pallet: 'Assets' },
      }),
    ]),
  )
  // The fee of the token transfer is paid in the coin, on a record of its own.
  const paid = transfers.filter((one: { fee_paid: string }) => one.fee_paid !== '0')
  expect(paid).toMatchObject([{ value: '0', token_address: '', from: addressOf(2) }])
  const listed = await call('ListAssets', {
    wallet_id,
    ...coin,
    token_address,
    is_aggregated: true,
  })
  expect(listed.assets).toMatchObject([{ balance: '1030', token_address }])
}, 60_000)
