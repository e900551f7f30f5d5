import { expect, test } from 'vitest'
import type { Overrides } from '../../../src/app/config/schema.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { startTonService } from './ton-service.ts'

const { dev, app, call, ask, mine, caughtUp } = await startTonService({ globalId: -3 })
const address = `0:${'2a'.repeat(32)}`

test('another node of T replaces the network, without a failed call, and tracking continues', async () => {
  await call('RegisterWallet', { name: 'wallet', address })
  const count = async () =>
    (await call('ListTransfers', { address, page_size: 100 })).transfers.length as number
  await dev.fund(address, 1_000_000_000n)
  await mine()
  await waitFor('the first transfer', async () => (await count()) === 1)

  const statuses = new Set<number>()
  let isOver = false
  const load = async () => {
    while (!isOver) statuses.add((await ask('ListWallets')).status)
  }
  const working = Promise.all([load(), load()])
  const upstreams = [{ url: dev.node_url.replace('127.0.0.1', 'localhost') }]
  const chains = { t: { networks: { mainnet: { upstreams } } } } as unknown as Overrides['chains']
  const replaced = app.reload({ chains })
  await dev.fund(address, 2_000_000_000n)
  await dev.mine()
  expect(await replaced).toMatchObject({ outcome: 'applied', changed: ['t/mainnet'] })
  await dev.fund(address, 3_000_000_000n)
  await dev.mine()
  await caughtUp()
  await waitFor('every transfer', async () => (await count()) === 3)
  isOver = true
  await working
  expect([...statuses]).toEqual([200])
  const { upstreams: nodes } = (await app.admin('/status')).json.chains.t.nodes.mainnet
  expect(nodes).toHaveLength(1)
  expect(nodes[0].name).toContain('localhost')

  const shown = async () => ({
    ...(await call('ListTransfers', { address, page_size: 100 })),
    ...(await call('ListAssets', { address, asset_type: 'ASSET_TYPE_T' })),
  })
  // All three deposits, less what keeping them costs.
  await waitFor(
    'the balance',
    async () => BigInt((await shown()).assets[0]?.balance ?? 0) > 5_900_000_000n,
  )
  const before = await shown()
  // Marked for test networks.
  expect(before.assets[0].user_friendly_address).toMatch(/^0/)
  const gone = await app.reload({ chains: {} })
  expect(gone).toMatchObject({ outcome: 'applied', removed: ['t/mainnet'] })
  expect(await count()).toBe(3)
  expect(await shown()).toEqual(before)
  const refused = await ask('RegisterWallet', { name: 'new', address: `0:${'2b'.repeat(32)}` })
  expect(refused.json.reason).toBe('CHAIN_NOT_CONFIGURED')
})
