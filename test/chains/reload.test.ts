import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import { afterAll, expect, test } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import type { Overrides } from '../../src/app/config/schema.ts'
import { connect } from '../gateway-ws/client.ts'
import { startTestApp } from '../helpers/app.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { startReceiver } from '../webhooks/receiver.ts'

// The chains of a service change while it is used. `alpha` is used all the time and must not notice that `beta` is
// added, gets another node and is removed, nor that a configuration with an error is loaded.

/** The campaign sets 10000. */
const requests = Number(process.env.RELOAD_REQUESTS ?? 500)

const [alpha, beta] = await Promise.all([
  startAnvil({ chainId: 7001 }),
  startAnvil({ chainId: 7002 }),
])
afterAll(async () => {
  await Promise.all([alpha.kill(), beta.kill()])
})
const webhooks = { allow_http: true, allowed_networks: ['127.0.0.0/8'] }
const chainOf = (...urls: string[]) => ({
  variants: ['C', 'Q'],
  networks: { mainnet: { upstreams: urls.map((url) => ({ url })) } },
})
const configOf = (chains: Overrides['chains']): Overrides => ({
  webhooks,
  // How fast the node is does not matter here. An emulated one on a busy machine may take long for one call.
  gateway: { timeout_seconds: 60 },
  chains: { alpha: chainOf(alpha.url), ...chains },
})
const service = await startTestApp({ config: configOf({}) })
const { member } = await service.createTenant()
const receiver = await startReceiver()

const call = async (at: string, operation: string, body: object = {}) => {
  const { status, json } = await service.call(member, `${at}/${operation}`, body)
  expect([at, operation, status, json]).toEqual([at, operation, 200, json])
  return json
}
const rpc = (chain: string, method: string, params: unknown[] = []) =>
  service.send(`/${chain}/mainnet/v1/${member.api_key}`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
const trackingOf = async (chain: string) =>
  (await service.admin('/status')).json.chains[chain]?.tracking
const tracked = (chain: string) =>
  waitFor(`${chain} is tracked`, async () => {
    const tracking = await trackingOf(chain)
    return tracking?.health === 'ok' && tracking.block_number !== null
  })
const address = `0x${'a7'.repeat(20)}`
const otherAddress = `0x${'c7'.repeat(20)}`
/** The same node under another address. */
const otherUrl = beta.url.replace('127.0.0.1', 'localhost')

test(
  'other chains are added, changed and removed without a failed request, a lost event or a lost notification',
  async () => {
    const { wallet_id } = await call('alpha', 'RegisterWallet', {
      ...{ name: 'used', address, confirmation: 1 },
    })
    await tracked('alpha')
    await call('alpha', 'RegisterWebhook', {
      ...{ wallet_id, webhook_endpoint: receiver.url, confirmation: 1 },
    })
    const client = await connect(
      `${service.base_url.replace('http', 'ws')}/alpha/mainnet/v1/ws/${member.api_key}`,
    )
    let closed: unknown
    void client.closed.then((reason) => {
      closed = reason
    })
    const heads = await client.subscribe('newHeads')

    const failures: unknown[] = []
    let answered = 0
    let isOver = false
    const load = async (worker: number) => {
      for (let turn = 0; !isOver; turn++) {
        const isOperation = (worker + turn) % 2 === 0
        const { status, json } = isOperation
          ? await service.call(member, 'alpha/ListTransfers', { wallet_id, page_size: 5 })
          : await rpc('alpha', 'eth_getBalance', [address, 'latest'])
        answered++
        if (status !== 200 || (!isOperation && json.result === undefined))
          failures.push({ isOperation, status, json })
        // Without a pause, the reloads wait for the processor.
        await delay(10)
      }
    }
    const [from] = await alpha.call<string[]>('eth_accounts')
    const sent: string[] = []
    const deposits = async () => {
      while (!isOver) {
        const value = `0x${(sent.length + 1).toString(16)}`
        sent.push(await alpha.call('eth_sendTransaction', [{ from, to: address, value }]))
        await delay(50)
      }
    }
    const first = Number(await alpha.call('eth_blockNumber'))
    const working = Promise.all([0, 1, 2].map(load).concat(deposits()))

    let rounds = 0
    while (rounds < 2 || answered < requests) {
      rounds++
      const added = await service.reload(configOf({ beta: chainOf(beta.url) }))
      expect(added).toMatchObject({ outcome: 'applied', added: ['beta/mainnet'], problems: [] })
      const { wallet_id } = await call('beta', 'RegisterWallet', {
        ...{ name: 'short', address: otherAddress, confirmation: 1 },
      })
      await tracked('beta')
      await call('beta', 'RemoveWallet', { wallet_id })
      expect(Number((await rpc('beta', 'eth_chainId')).json.result)).toBe(7002)

      const wider = await service.reload(configOf({ beta: chainOf(beta.url, otherUrl) }))
      expect(wider).toMatchObject({ outcome: 'applied', changed: ['beta/mainnet'] })
      const moved = await service.reload(configOf({ beta: chainOf(otherUrl) }))
      expect(moved).toMatchObject({ outcome: 'applied', changed: ['beta/mainnet'] })
      expect((await rpc('beta', 'eth_chainId')).status).toBe(200)

      const bad = await service.reload(configOf({ beta: { ...chainOf(otherUrl), prefix: 'A!' } }))
      expect(bad.outcome).toBe('refused')
      expect(bad.problems[0]).toMatchObject({ key: 'chains.beta.prefix' })
      expect((await rpc('beta', 'eth_chainId')).status).toBe(200)

      const reloadCopy = async () => {
        const outcome = await service.reload(
          configOf({ beta: chainOf(otherUrl), copy: chainOf(alpha.url) }),
        )
        // A node that is not heard within its time, as on a busy machine, is decided on by its tracker.
        if (outcome.outcome === 'applied')
          await service.reload(configOf({ beta: chainOf(otherUrl) }))
        return outcome
      }
      let same = await reloadCopy()
      await waitFor('the copy is refused', async () => {
        if (same.outcome === 'applied') same = await reloadCopy()
        return same.outcome === 'refused'
      })
      expect(same.problems[0]?.message).toMatch(/chains\.copy\.networks\.mainnet.*alpha\/mainnet/)
      expect((await rpc('copy', 'eth_chainId')).status).toBe(404)

      const removed = await service.reload(configOf({}))
      expect(removed).toMatchObject({ outcome: 'applied', removed: ['beta/mainnet'] })
      expect((await rpc('beta', 'eth_chainId')).status).toBe(404)
    }
    isOver = true
    await working

    expect(failures).toEqual([])
    expect(answered).toBeGreaterThanOrEqual(requests)
    // A transaction is answered before its block is there.
    const receipt = () =>
      alpha.call<{ blockNumber: string } | null>('eth_getTransactionReceipt', [sent.at(-1)])
    await waitFor('the last deposit is mined', async () => (await receipt()) !== null)
    const last = Number((await receipt())!.blockNumber)
    const pushed = () => client.pushes(heads).map(({ number }) => Number(number))
    await waitFor('the last block is pushed', () => pushed().includes(last))
    expect(closed).toBeUndefined()
    const expected = Array.from({ length: last - first }, (_, index) => first + 1 + index)
    expect(pushed().filter((number) => number > first)).toEqual(expected)
    const notified = () =>
      new Set(receiver.received.map(({ json }) => json.data?.transaction_hash ?? json.data?.hash))
    await waitFor('every deposit is notified', () => sent.every((hash) => notified().has(hash)))
    console.info(
      `reload under load: ${rounds * 6} reloads, ${answered} requests, 0 failed, ${sent.length} deposits notified, ${expected.length} heads`,
    )
  },
  Math.max(600_000, requests * 300),
)

test('what is stored of a removed chain can be read, and tracking resumes where it ended', async () => {
  await service.reload(configOf({ beta: chainOf(beta.url) }))
  const { wallet_id } = await call('beta', 'RegisterWallet', {
    ...{ name: 'kept', address, confirmation: 1 },
  })
  await tracked('beta')
  const [from] = await beta.call<string[]>('eth_accounts')
  const deposit = (value: number) =>
    beta.call('eth_sendTransaction', [{ from, to: address, value: `0x${value.toString(16)}` }])
  const values = async () => {
    const { transfers } = await call('beta', 'ListTransfers', { wallet_id })
    return transfers.map(({ value }: { value: string }) => Number(value)).toSorted()
  }
  await deposit(1)
  const balances = async () =>
    (await call('beta', 'ListAssets', { wallet_id, asset_type: 'ASSET_TYPE_C' })).assets
  await waitFor('the first deposit', async () => (await values()).length === 1)
  await waitFor('its balance', async () => (await balances()).length === 1)

  await service.reload(configOf({}))
  await deposit(2)
  expect((await call('beta', 'ListWallets')).wallets).toHaveLength(1)
  expect(await values()).toEqual([1])
  expect(await balances()).toHaveLength(1)
  expect((await call('beta/mainnet', 'ListWallets')).wallets).toHaveLength(1)
  const refused = await service.call(member, 'beta/RegisterWallet', {
    ...{ name: 'new', address: `0x${'b7'.repeat(20)}`, confirmation: 1 },
  })
  expect(refused.json.reason).toBe('CHAIN_NOT_CONFIGURED')
  expect((await service.send('/openapi.json?chain=beta', { method: 'GET' })).status).toBe(404)

  // A service that starts without the chain reads it as well.
  const other = await startTestApp({ beside: service, config: configOf({}) })
  const { status, json } = await other.call(member, 'beta/ListWallets')
  expect([status, json.wallets?.length]).toEqual([200, 1])
  await other.stop()

  await service.reload(configOf({ beta: chainOf(beta.url) }))
  await waitFor('the deposit in between', async () => (await values()).length === 2)
  expect(await values()).toEqual([1, 2])
})

test('a network with other settings is replaced: its connections are closed and nothing is missed', async () => {
  const config = (proof: string) => {
    const { networks, ...beta_ } = chainOf(beta.url)
    return configOf({ beta: { ...beta_, networks: { mainnet: { ...networks.mainnet, proof } } } })
  }
  await service.reload(config('root'))
  await waitFor('beta is tracked up to its head', async () => {
    const head = Number(await beta.call('eth_blockNumber'))
    return (await trackingOf('beta'))?.block_number === head
  })
  const { wallets } = await call('beta', 'ListWallets')
  const { wallet_id } = wallets[0]
  const count = async () =>
    (await call('beta', 'ListTransfers', { wallet_id, page_size: 100 })).transfers.length as number
  const before = await count()
  const url = (chain: string) =>
    `${service.base_url.replace('http', 'ws')}/${chain}/mainnet/v1/ws/${member.api_key}`
  const [own, other] = [await connect(url('beta')), await connect(url('alpha'))]
  const [from] = await beta.call<string[]>('eth_accounts')
  const replaced = service.reload(config('bloom'))
  for (let sent = 0; sent < 5; sent++)
    await beta.call('eth_sendTransaction', [{ from, to: address, value: '0x9' }])
  expect(await replaced).toMatchObject({ outcome: 'applied', changed: ['beta/mainnet'] })
  expect(await own.closed).toEqual({ code: 1012, reason: 'the network was replaced' })
  await waitFor('every deposit', async () => (await count()) === before + 5)
  expect((await other.call('eth_chainId')).result).toBe('0x1b59')
})

test('a connection that is kept finds the networks of now', async () => {
  const pool = new Pool(service.base_url, { connections: 1, pipelining: 1 })
  const status = async () => {
    const answer = await pool.request({
      path: `/beta/mainnet/v1/${member.api_key}`,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}',
    })
    await answer.body.dump()
    return answer.statusCode
  }
  await service.reload(configOf({ beta: chainOf(beta.url) }))
  expect(await status()).toBe(200)
  await service.reload(configOf({}))
  expect(await status()).toBe(404)
  await service.reload(configOf({ beta: chainOf(beta.url) }))
  expect(await status()).toBe(200)
  await pool.destroy()
})

test('settings beside the chains apply at once, and those that need a restart are named', async () => {
  const config: Overrides = {
    ...configOf({}),
    webhooks: { ...webhooks, timeout_seconds: 3 },
    limits: { per_second_limit: 77 },
    server: { cors_origins: ['https://app.example'], body_limit_bytes: 2_000 },
    logging: { level: 'warn' },
  }
  const origin = async () => {
    const { headers } = await service.send('/v1/alpha/ListWallets', {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example' },
    })
    return headers['access-control-allow-origin']
  }
  expect(await origin()).toBeUndefined()
  expect(await service.reload(config)).toMatchObject({
    outcome: 'applied',
    restart: ['server.body_limit_bytes'],
    settings: [
      'server.cors_origins',
      'limits.per_second_limit',
      'webhooks.timeout_seconds',
      'logging.level',
    ],
  })
  expect(await origin()).toBe('https://app.example')
  const { json } = await service.admin('/status')
  expect(json.configuration.last_reload).toMatchObject({
    outcome: 'applied',
    time: expect.any(String),
  })
  const { text } = await service.admin('/metrics')
  expect(text).toMatch(/portolan_config_reloads_total\{outcome="applied"\} \d/)
  expect(text).toContain('portolan_config_last_reload_successful 1')
})
