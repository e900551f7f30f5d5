import { afterAll, expect, test } from 'vitest'
import { type Anvil, startAnvil } from '../../devnet/anvil/anvil.ts'
import { startPolkadotDevChain } from '../../devnet/polkadot/node.ts'
import { startSuiDevChain } from '../../devnet/sui/dev-chain.ts'
import { startTonDevChain } from '../../devnet/ton/ton-dev-chain.ts'
import type { Overrides } from '../../src/app/config/schema.ts'
import { families } from '../../src/chains/registry.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import { startTestApp } from '../helpers/app.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { accountOf } from '../helpers/wallets.ts'
import { startReceiver } from '../webhooks/receiver.ts'

// Six EVM networks with different chain ids, block times and hard forks, and one of each other family. A chain of a free
// name offers wallets and queries, on two networks; the others only wallets.
const startEvm = (chainId: number, hardfork: string, ...more: string[]) =>
  startAnvil({ chainId, args: ['--accounts', '2', '--hardfork', hardfork, ...more] })
const evm = await Promise.all([
  startEvm(8453, 'prague'),
  startEvm(84532, 'cancun', '--block-time', '1'),
  startEvm(137, 'shanghai'),
  startEvm(56, 'berlin', '--block-time', '2'),
  startEvm(1, 'prague', '--block-time', '3'),
  startEvm(100, 'london'),
])
const [mainnet, sepolia, polygon, bsc, ethereum, gnosis] = evm
// The hash of anvil's first block does not fit its header under London; that of every later one does.
await gnosis.call('evm_mine')
const [ton, sui, polkadot] = await Promise.all([
  startTonDevChain({ blockTimeMs: 1_000 }),
  startSuiDevChain({ blockTimeMs: 1_000 }),
  startPolkadotDevChain({ blockTimeMs: 1_000 }),
])
afterAll(async () => {
  await Promise.all([
    ...evm.map((anvil) => anvil.kill()),
    ...[ton, sui, polkadot].map((chain) => chain.stop()),
  ])
})
const nodes = (url: string) => ({ upstreams: [{ url }] })
const wallets = (variant: 'C' | 'T' | 'S' | 'P', url: string) => ({
  variant,
  networks: { mainnet: nodes(url) },
})
const configOf = (more: Overrides['chains'] = {}): Overrides => ({
  webhooks: { allow_http: true, allowed_networks: ['127.0.0.0/8'] },
  chains: {
    base: {
      variants: ['C', 'Q'],
      networks: { mainnet: nodes(mainnet.url), sepolia: nodes(sepolia.url) },
    },
    polygon: wallets('C', polygon.url),
    bsc: wallets('C', bsc.wsUrl),
    ethereum: wallets('C', ethereum.url),
    gnosis: wallets('C', gnosis.url),
    ton: wallets('T', ton.node_url),
    sui: wallets('S', sui.node_url),
    polkadot: wallets('P', polkadot.node_url),
    // The nodes of polygon under a second name.
    copy: wallets('C', polygon.url),
    ...more,
  },
})
const service = await startTestApp({ config: configOf() })
const { organization_id, admin, member } = await service.createTenant()
type Place = {
  at: string
  service: WalletService
  fund(address: string, amount: bigint): Promise<unknown>
}
const onEvm = (at: string, anvil: Anvil): Place => ({
  at,
  service: 'c',
  fund: async (to, amount) => {
    const [from] = await anvil.call<string[]>('eth_accounts')
    // With a gas price: Berlin has no base fee.
    const gasPrice = await anvil.call('eth_gasPrice')
    const value = `0x${amount.toString(16)}`
    await anvil.call('eth_sendTransaction', [{ from, to, value, gasPrice }])
  },
})
const places: readonly Place[] = [
  onEvm('base', mainnet),
  onEvm('base/sepolia', sepolia),
  onEvm('polygon', polygon),
  onEvm('bsc', bsc),
  onEvm('ethereum', ethereum),
  onEvm('gnosis', gnosis),
  { at: 'ton', service: 't', fund: ton.fund },
  { at: 'sui', service: 's', fund: sui.fund },
  { at: 'polkadot', service: 'p', fund: polkadot.fund },
]
const addressOf = (family: WalletService): string =>
  families[family]().formatAddress(accountOf(family, 1))
/** Different on every network, and enough for an account to exist everywhere. */
const amountOf = (index: number): bigint => 10n ** 12n + BigInt(index)
const call = async (at: string, operation: string, body: object = {}) => {
  const { status, json } = await service.call(member, `${at}/${operation}`, body)
  expect([at, operation, status, json]).toEqual([at, operation, 200, json])
  return json
}
const registered = new Map<string, string>()
/** Registers a wallet. The first registration on a network is refused while its first block is not tracked. */
const register = async (at: string, wallet: object): Promise<string> => {
  let wallet_id: string | undefined
  await waitFor(`a wallet on ${at}`, async () => {
    const { status, json } = await service.call(member, `${at}/RegisterWallet`, wallet)
    expect([at, status, json]).toEqual([at, status === 503 ? 503 : 200, json])
    wallet_id = json.wallet_id
    return status === 200
  })
  return wallet_id as string
}

test('what arrives right after the first registration on a network is not missed', async () => {
  const [from] = await sepolia.call<string[]>('eth_accounts')
  const early = `0x${'cd'.repeat(20)}`
  const wallet = { name: 'early', address: early, confirmation: 1 }
  const wallet_id = await register('base/sepolia', wallet)
  await sepolia.call('eth_sendTransaction', [{ from, to: early, value: '0x7' }])
  await waitFor('the transfer', async () => {
    const { transfers } = await call('base/sepolia', 'ListTransfers', { wallet_id })
    return transfers.length === 1 && transfers[0].value === '7'
  })
  await call('base/sepolia', 'RemoveWallet', { wallet_id })
})

test('nothing is asked of nodes whose network was not used', async () => {
  const { chains } = (await service.admin('/status')).json
  for (const name of ['polygon', 'bsc', 'ethereum', 'gnosis']) {
    const { state, upstreams } = chains[name].nodes.mainnet
    expect([name, state, upstreams[0].requests]).toEqual([name, 'idle', 0])
    expect(chains[name]).not.toHaveProperty('tracking')
  }
  for (const name of ['ton', 'sui', 'polkadot']) expect(chains[name]).not.toHaveProperty('tracking')
})

test('of two networks with the same nodes that are both new the second is refused from the start', async () => {
  await waitFor('the problem is shown', async () => {
    const { copy } = (await service.admin('/status')).json.chains
    return /polygon\/mainnet/.test(copy.tracking?.problem)
  })
  const wallet = { name: 'copy', address: addressOf('c') }
  const { status, json } = await service.call(member, 'copy/RegisterWallet', wallet)
  expect([status, json.detail]).toEqual([
    503,
    'copy/mainnet is not tracked: its nodes are those of polygon/mainnet. Nothing was registered.',
  ])
})

test('the same scenario on every network at once: wallet, webhook, deposit, balance', async () => {
  const receiver = await startReceiver()
  await Promise.all(
    places.map(async ({ at, service: family, fund }, index) => {
      const address = addressOf(family)
      const confirmation = 1
      const wallet = {
        ...{ name: at, address },
        ...((family === 's' || family === 'c') && { confirmation }),
      }
      const wallet_id = await register(at, wallet)
      registered.set(at, wallet_id)
      const webhook_endpoint = new URL(`/${at}`, receiver.url).href
      await call(at, 'RegisterWebhook', { wallet_id, webhook_endpoint, confirmation })
      const amount = amountOf(index)
      await fund(address, amount)
      await waitFor(`the transfer on ${at}`, async () => {
        const { transfers } = await call(at, 'ListTransfers', { wallet_id })
        return transfers.length === 1 && transfers[0].value === String(amount)
      })
      await waitFor(`the balance on ${at}`, async () => {
        const asset_type = `ASSET_TYPE_${family.toUpperCase()}`
        const { assets } = await call(at, 'ListAssets', { wallet_id, asset_type })
        return assets[0]?.balance === String(amount)
      })
      await waitFor(`the notification of ${at}`, async () =>
        receiver.received.some(
          ({ path, json }) =>
            path === `/${at}` && json.data?.transfers?.[0]?.value === String(amount),
        ),
      )
    }),
  )
  const ids = await Promise.all(
    places.map(async ({ at }) => {
      const { transfers } = await call(at, 'ListTransfers', { wallet_id: registered.get(at) })
      return transfers[0].transfer_id as string
    }),
  )
  expect(new Set(ids).size).toBe(places.length)
})

test('a wallet of one network does not exist on another', async () => {
  const wallet_id = registered.get('base/sepolia')
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
  const wallet = { name: 'copy', address: addressOf('c') }
  const { status } = await service.call(member, 'copy/RegisterWallet', wallet)
  expect(status).toBe(503)
  await waitFor('the problem is shown', async () => {
    const { copy } = (await service.admin('/status')).json.chains
    return /polygon\/mainnet/.test(copy.tracking.problem)
  })
  const { json } = await service.send('/status', { method: 'GET' })
  expect(json.status).toBe('degraded')
})

test.each([
  ['tron', 'ton', wallets('T', ton.node_url)],
  ['sea', 'sui', wallets('S', sui.node_url)],
  ['dot', 'polkadot', wallets('P', polkadot.node_url)],
])('a reload with %s on the nodes of %s is refused with both names', async (name, other, chain) => {
  const refused = await service.reload(
    configOf({ [name]: chain } as unknown as Overrides['chains']),
  )
  expect(refused.outcome).toBe('refused')
  expect(refused.problems[0]?.message).toMatch(
    new RegExp(`chains.${name}.networks.mainnet.* has the nodes of ${other}/mainnet`),
  )
  expect((await service.admin('/status')).json.chains).not.toHaveProperty(name)
})

test('the documents describe the chains of this installation', async () => {
  const { json } = await service.send('/openapi.json', { method: 'GET' })
  expect(json.paths).toHaveProperty(['/v1/base/GetBlock'])
  expect(json.paths).toHaveProperty(['/v1/polygon/CreateTransaction'])
  expect(json.paths).not.toHaveProperty(['/v1/polygon/GetBlock'])
  expect(json.paths).not.toHaveProperty(['/v1/c/ListWallets'])
  const one = await service.send('/openapi.json?chain=polygon', { method: 'GET' })
  expect(Object.keys(one.json.paths).every((path) => path.startsWith('/v1/polygon/'))).toBe(true)
  const unknown = await service.send('/openapi.json?chain=polygn', { method: 'GET' })
  expect([unknown.status, unknown.json.detail]).toEqual([
    404,
    'There is no chain "polygn" here. Did you mean "polygon"?',
  ])
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
