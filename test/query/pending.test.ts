import { parseGwei } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import type { Overrides } from '../../src/app/config/schema.ts'
import { shiftedClock } from '../helpers/app.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { createExpected, parseExact } from './expected.ts'
import { startMethodProxy } from './method-proxy.ts'
import { type QueryApp, startQueryApp } from './query-app.ts'

const anvil = await startAnvil({ args: ['--no-mining', '--network', 'optimism'] })
afterAll(anvil.stop)
const expected = createExpected(anvil.url)
const clock = shiftedClock()
// Without these a node announces nothing by itself.
const mute = ['eth_newPendingTransactionFilter', 'txpool_status', 'txpool_content']
const slow = { timeout: 240_000 }
const longWait = { timeoutMs: 90_000, everyMs: 100 }

// Accounts that every anvil begins with, one for each test.
const accounts = [
  '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
  '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a',
  '0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6',
  '0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a',
  '0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba',
  '0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e',
  '0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356',
].map((key) => privateKeyToAccount(key as `0x${string}`))
let next = 0
const nextAccount = () => accounts[next++]!

type Account = (typeof accounts)[number]
const sign = (account: Account, nonce: number, gwei: string) =>
  account.signTransaction({
    ...{ type: 'eip1559', chainId: 31337, nonce, gas: 21_000n, to: account.address, value: 1n },
    maxFeePerGas: parseGwei(gwei),
    maxPriorityFeePerGas: parseGwei('1'),
  })
const submit = async (account: Account, nonce: number, gwei = '5') =>
  await anvil.call<string>('eth_sendRawTransaction', [await sign(account, nonce, gwei)])

let app: QueryApp
beforeAll(async () => {
  app = await startQueryApp([anvil.wsUrl], { clock })
}, 120_000)

const listOf = async (service: QueryApp, account: Account, nonce?: number): Promise<string[]> => {
  const { status, json } = await service.query('ListPendingTransactions', {
    from: account.address.toLowerCase(),
    ...(nonce !== undefined && { nonce }),
  })
  expect(status).toBe(200)
  return json.pending_transactions.map((one: { transaction_hash: string }) => one.transaction_hash)
}
const shows = (service: QueryApp, account: Account, hashes: string[], nonce?: number) =>
  waitFor(
    `the list is ${hashes}`,
    async () => String(await listOf(service, account, nonce)) === String(hashes),
    longWait,
  )
const get = async (service: QueryApp, transaction_hash: string) =>
  await service.query('GetPendingTransaction', { transaction_hash })

it('shows the recorder in the status and the metrics', slow, async () => {
  const account = nextAccount()
  await shows(app, account, [await submit(account, 0)])
  const recorder = async () => (await app.admin('/status')).json.chains.q.pending_transactions
  await waitFor('it listens', async () => (await recorder()).sources.length === 1, longWait)
  await waitFor('all is fetched', async () => (await recorder()).queued === 0, longWait)
  expect(await recorder()).toEqual({
    ...{ sources: ['node-0'], reads_txpool: true, queued: 0, recorded: 1, dropped: 0 },
    ...{ kept: expect.any(Number), waiting: expect.any(Number) },
  })
  const { text } = await app.admin('/metrics')
  for (const [name, value] of Object.entries({ recorded_total: 1, dropped_total: 0, sources: 1 }))
    expect(text).toContain(`\nportolan_pending_${name}{chain="q",network="mainnet"} ${value}\n`)
})

it('lists what was announced and what waits for a nonce, by nonce', slow, async () => {
  const account = nextAccount()
  const second = await submit(account, 1)
  const gap = await submit(account, 5)
  const first = await submit(account, 0)
  await shows(app, account, [first, second, gap])
  await shows(app, account, [second], 1)
  await shows(app, account, [], 2)
  const { text, json } = await get(app, first)
  const { record_time } = json.pending_transaction
  expect(record_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(parseExact(text)).toEqual({
    pending_transaction: await expected.pending(first, record_time),
  })
  for (const hash of [first, second, gap]) await anvil.call('anvil_dropTransaction', [hash])
})

it('one that is replaced by a higher fee leaves the list and stays readable', slow, async () => {
  const account = nextAccount()
  const old = await submit(account, 0, '5')
  await shows(app, account, [old])
  const better = await submit(account, 0, '9')
  await shows(app, account, [better])
  const { status, json } = await get(app, old)
  expect(status).toBe(200)
  expect(json.pending_transaction).toMatchObject({ gas_price: 5_000_000_000, nonce: 0 })
  await anvil.call('anvil_dropTransaction', [better])
})

it('one that is dropped leaves the list and stays readable for 24 hours', slow, async () => {
  const account = nextAccount()
  const hash = await submit(account, 0)
  await shows(app, account, [hash])
  await anvil.call('anvil_dropTransaction', [hash])
  await shows(app, account, [])
  expect((await get(app, hash)).status).toBe(200)
  clock.shift(24 * 3_600_000 - 60_000)
  expect((await get(app, hash)).status).toBe(200)
  clock.shift(120_000)
  const { status, json } = await get(app, hash)
  expect({ status, reason: json.reason }).toEqual({
    status: 404,
    reason: 'PENDING_TRANSACTION_NOT_FOUND',
  })
})

it('one that is mined leaves the list, and the transaction is there', slow, async () => {
  const account = nextAccount()
  const hash = await submit(account, 0)
  await shows(app, account, [hash])
  await anvil.call('evm_mine')
  await shows(app, account, [])
  expect((await get(app, hash)).status).toBe(200)
  expect((await app.query('GetTransaction', { transaction_hash: hash })).status).toBe(200)
})

it('what is sent through the gateway is recorded, though no node announces it', slow, async () => {
  const account = nextAccount()
  const proxy = await startMethodProxy(anvil.url, mute)
  const service = await startQueryApp([proxy.url])
  const raw = await sign(account, 0, '5')
  const body = { jsonrpc: '2.0', id: 1, method: 'eth_sendRawTransaction', params: [raw] }
  const { json } = await service.send(`/q/mainnet/v1/${service.tenant.member.api_key}`, {
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
  await shows(service, account, [json.result])
  await anvil.call('anvil_dropTransaction', [json.result])
})

it('what SendTransaction hands to the same chain is recorded as well', slow, async () => {
  const account = nextAccount()
  const from = account.address.toLowerCase()
  const proxy = await startMethodProxy(anvil.url, mute)
  const on = (url: string) => ({ networks: { mainnet: { upstreams: [{ url }] } } })
  const chains = { q: on(proxy.url), c: on(anvil.url) } as unknown as Overrides['chains']
  const service = await startQueryApp([], { chains })
  const call = async (operation: string, body: object) => {
    const { status, json } = await service.call(service.tenant.member, `c/${operation}`, body)
    expect({ status, detail: json.detail }).toEqual({ status: 200, detail: undefined })
    return json
  }
  const { wallet_id } = await call('RegisterWallet', { name: 'w', address: from })
  const { transaction } = await call('CreateTransaction', { wallet_id, from, to: from, value: '1' })
  const { transaction_id } = transaction
  const { transaction_message_to_sign: hash } = await call('GetTransactionMessageToSign', {
    transaction_id,
  })
  await call('SubmitTransactionSignature', {
    transaction_id,
    signature: await account.sign({ hash }),
  })
  const sent = await call('SendTransaction', { transaction_id })
  await shows(service, account, [sent.transaction.transaction_hash])
  await anvil.call('anvil_dropTransaction', [sent.transaction.transaction_hash])
})

it('a restart loses nothing and detects changes made while it was down', slow, async () => {
  const account = nextAccount()
  const mined = await submit(account, 0)
  const dropped = await submit(account, 1)
  const waiting = await submit(account, 3)
  await shows(app, account, [mined, dropped, waiting])
  const before = await get(app, mined)
  await app.stop()
  await anvil.call('anvil_dropTransaction', [dropped])
  await anvil.call('evm_mine')
  const again = await startQueryApp([anvil.url], { beside: app, clock })
  await shows(again, account, [waiting])
  for (const hash of [mined, dropped]) expect((await get(again, hash)).status).toBe(200)
  expect((await get(again, mined)).text).toBe(before.text)
  await anvil.call('anvil_dropTransaction', [waiting])
})
