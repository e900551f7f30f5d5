import { afterAll, expect, test } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { startTestApp } from '../helpers/app.ts'
import { waitFor } from '../helpers/wait-for.ts'

// Three nodes of different chains. A chain of a free name offers wallets and queries, on two networks; another
// name only wallets; `c` keeps working beside them.
const [mainnet, sepolia, polygon] = await Promise.all([
  startAnvil({ chainId: 8453 }),
  startAnvil({ chainId: 84532 }),
  startAnvil({ chainId: 137 }),
])
afterAll(async () => {
  await Promise.all([mainnet.kill(), sepolia.kill(), polygon.kill()])
})
const nodes = (url: string) => ({ upstreams: [{ url }] })
const service = await startTestApp({
  config: {
    chains: {
      base: {
        variants: ['C', 'Q'],
        networks: { mainnet: nodes(mainnet.url), sepolia: nodes(sepolia.url) },
      },
      polygon: { variant: 'C', networks: { mainnet: nodes(polygon.url) } },
      // The nodes of polygon under a second name.
      copy: { variant: 'C', networks: { mainnet: nodes(polygon.url) } },
    },
  },
})
const { organization_id, admin, member } = await service.createTenant()
const places = [
  ['base', mainnet],
  ['base/sepolia', sepolia],
  ['polygon', polygon],
] as const
const address = `0x${'ab'.repeat(20)}`
const call = async (at: string, operation: string, body: object = {}) => {
  const { status, json } = await service.call(member, `${at}/${operation}`, body)
  expect([at, operation, status, json]).toEqual([at, operation, 200, json])
  return json
}
const wallets = new Map<string, string>()

test('what arrives right after the first registration on a network is not missed', async () => {
  const [from] = await sepolia.call<string[]>('eth_accounts')
  const early = `0x${'cd'.repeat(20)}`
  const { wallet_id } = await call('base/sepolia', 'RegisterWallet', {
    ...{ name: 'early', address: early, confirmation: 1 },
  })
  await sepolia.call('eth_sendTransaction', [{ from, to: early, value: '0x7' }])
  await waitFor('the transfer', async () => {
    const { transfers } = await call('base/sepolia', 'ListTransfers', { wallet_id })
    return transfers.length === 1 && transfers[0].value === '7'
  })
  await call('base/sepolia', 'RemoveWallet', { wallet_id })
})

test('the same address is tracked on every network, each with its own balance and transfers', async () => {
  for (const [at] of places) {
    const { wallet_id } = await call(at, 'RegisterWallet', { name: at, address, confirmation: 1 })
    wallets.set(at, wallet_id)
  }
  const status = async () => (await service.admin('/status')).json.chains
  await waitFor('all three are tracked', async () => {
    const { base, polygon } = await status()
    const tracked = [base.tracking, base.tracking_of_networks?.sepolia, polygon.tracking]
    return tracked.every((one) => one?.block_number !== null && one?.block_number !== undefined)
  })
  for (const [index, [, anvil]] of places.entries()) {
    const [from] = await anvil.call<string[]>('eth_accounts')
    await anvil.call('eth_sendTransaction', [
      { from, to: address, value: `0x${(index + 1).toString(16)}` },
    ])
  }
  for (const [index, [at]] of places.entries()) {
    const wallet_id = wallets.get(at)
    await waitFor(`the transfer on ${at}`, async () => {
      const { transfers } = await call(at, 'ListTransfers', { wallet_id })
      return transfers.length === 1 && transfers[0].value === String(index + 1)
    })
    await waitFor(`the balance on ${at}`, async () => {
      const { assets } = await call(at, 'ListAssets', { wallet_id, asset_type: 'ASSET_TYPE_C' })
      return assets[0]?.balance === String(index + 1)
    })
  }
  const ids = await Promise.all(
    places.map(async ([at]) => {
      const { transfers } = await call(at, 'ListTransfers', { wallet_id: wallets.get(at) })
      return transfers[0].transfer_id as string
    }),
  )
  expect(new Set(ids).size).toBe(3)
})

test('a wallet of one network does not exist on another', async () => {
  const wallet_id = wallets.get('base/sepolia')
  const { status, json } = await service.call(member, 'base/GetWallet', { wallet_id })
  expect([status, json.reason]).toEqual([404, 'WALLET_NOT_FOUND'])
  expect((await call('base/sepolia', 'ListWallets')).wallets).toHaveLength(1)
  expect((await call('base/mainnet', 'ListWallets')).wallets).toHaveLength(1)
})

test('chain queries answer from the network of the address', async () => {
  const { block } = await call('base/sepolia', 'GetBlock', { block_number: 1 })
  const own = await sepolia.call<{ hash: string }>('eth_getBlockByNumber', ['0x1', false])
  const other = await mainnet.call<{ hash: string }>('eth_getBlockByNumber', ['0x1', false])
  expect(block.block_hash).toBe(own.hash)
  expect(block.block_hash).not.toBe(other.hash)
})

test('the gateway serves every network under the name of its chain', async () => {
  const ids = await Promise.all(
    ['base/mainnet', 'base/sepolia', 'polygon/mainnet'].map(async (path) => {
      const { json } = await service.send(`/${path}/v1/${member.api_key}`, {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }),
      })
      return Number(json.result)
    }),
  )
  expect(ids).toEqual([8453, 84532, 137])
})

test('unknown chains and networks are 404 with the nearest name', async () => {
  const said = async (path: string) => {
    const { status, json } = await service.call(member, `${path}/ListWallets`, {})
    return [status, json.reason, json.detail]
  }
  expect(await said('bsae')).toEqual([
    404,
    'ROUTE_NOT_FOUND',
    'There is no chain "bsae" here. Did you mean "base"?',
  ])
  expect((await said('base/sepola'))[2]).toBe(
    'There is no network of base "sepola" here. Did you mean "sepolia"?',
  )
})

test('nodes of a network that is tracked already are refused with both names', async () => {
  await waitFor('the problem is shown', async () => {
    const { copy } = (await service.admin('/status')).json.chains
    return /polygon\/mainnet/.test(copy.tracking.problem)
  })
  const { json } = await service.send('/status', { method: 'GET' })
  expect(json.status).toBe('degraded')
})

test('the documents describe the chains of this installation', async () => {
  const { json } = await service.send('/openapi.json', { method: 'GET' })
  expect(json.paths).toHaveProperty(['/v1/base/GetBlock'])
  expect(json.paths).toHaveProperty(['/v1/polygon/CreateTransaction'])
  expect(json.paths).not.toHaveProperty(['/v1/polygon/GetBlock'])
  expect(json.paths).not.toHaveProperty(['/v1/c/ListWallets'])
  const one = await service.send('/openapi.json?chain=polygon', { method: 'GET' })
  expect(Object.keys(one.json.paths).every((path) => path.startsWith('/v1/polygon/'))).toBe(true)
  expect((await service.send('/openapi.json?chain=x', { method: 'GET' })).status).toBe(404)
})

test('limits are those of the chain, on all its networks', async () => {
  const limits = { per_second_limit: 9, per_hour_limit: 9, per_day_limit: 9, per_month_limit: 9 }
  const limit = { organization_id, chain: 'base', ...limits, per_second_limit: 0 }
  const set = await service.call(admin, 'admin/SetRateLimit', limit)
  expect([set.status, set.json]).toEqual([200, set.json])
  const reason = async (at: string) =>
    (await service.call(member, `${at}/ListWallets`, {})).json.reason ?? 'OK'
  await waitFor('the limit applies', async () => (await reason('base')) !== 'OK')
  expect(await reason('base/sepolia')).toBe('RATE_LIMIT_BLOCKED')
  expect(await reason('polygon')).toBe('OK')
  const unknown = { organization_id, chain: 'polygn', ...limits }
  const refused = await service.call(admin, 'admin/SetRateLimit', unknown)
  expect(refused.json.errors[0].detail).toContain('Did you mean polygon?')
})
