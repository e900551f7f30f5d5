import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { parseTransaction, serializeSignature } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it, test } from 'vitest'
import { balanceLine } from './balance-lines.ts'
import { explorerLink } from './chains.ts'
import { findInDocs } from './docs-search.ts'
import { toCsv } from './export.ts'
import { signatureOf } from './legacy-signature.ts'
import { metricSeries } from './metrics.ts'
import { parseHeaders } from './parse-headers.ts'
import { unitOf } from './records.ts'
import { readReference } from './reference.ts'
import { replacementPrice } from './replacement-price.ts'
import { rpcBody, withEntry } from './rpc.ts'
import { shellQuote, snippetOf } from './snippets.ts'
import { sumUsage, usageDays } from './usage.ts'

describe('snippets', () => {
  const call = {
    baseUrl: 'https://example.com/portolan',
    chain: 'c',
    operation: 'RegisterWallet',
    request: { name: `it's "quoted" $HOME \`id\`` },
  }

  it.each(['curl', 'typescript', 'python', 'go', 'cli'])('%s has the operation', (language) => {
    expect(snippetOf(language, call)).toContain('RegisterWallet')
  })

  it('curl signs what the service checks', () => {
    const [signing = ''] = snippetOf('curl', call).split('\ncurl ')
    const script = `${signing}\nprintf '%s\\n' "$nonce" "$path" "$body" "$signature"`
    const env = { ...process.env, API_SECRET: 'secret' }
    const output = execFileSync('sh', ['-c', script], { env, encoding: 'utf8' })
    const [nonce, path, body, signature] = output.split('\n')
    expect(path).toBe('/portolan/v1/c/RegisterWallet')
    expect(JSON.parse(body ?? '')).toEqual(call.request)
    const expected = createHmac('sha256', 'secret')
      .update(`${nonce}POST${path}${body}`)
      .digest('hex')
    expect(signature).toBe(expected)
  })

  it('names other chains and networks', () => {
    const other = { ...call, chain: 'base', network: 'sepolia' }
    expect(snippetOf('typescript', other)).toContain(
      `client.chain("base", { network: "sepolia" }).RegisterWallet(`,
    )
    expect(snippetOf('cli', other)).toContain('call base/sepolia RegisterWallet')
  })

  it('quotes one word of a shell', () => {
    expect(shellQuote(`a'b`)).toBe(`'a'\\''b'`)
  })
})

test('the signature of a signed legacy transaction', async () => {
  const account = privateKeyToAccount(`0x${'11'.repeat(32)}`)
  for (const nonce of [0, 1, 200, 70_000]) {
    const raw = await account.signTransaction({
      type: 'legacy',
      chainId: 31_337,
      nonce,
      to: account.address,
      value: 10n ** 18n,
      gas: 21_000n,
      gasPrice: 10n ** 9n,
      data: `0x${'ab'.repeat(nonce % 300)}`,
    })
    const { r, s, v } = parseTransaction(raw) as { r: `0x${string}`; s: `0x${string}`; v: bigint }
    const yParity = Number((v - 35n) % 2n)
    const expected = serializeSignature({ r, s, yParity }).replace(/1b$/, '00').replace(/1c$/, '01')
    expect(signatureOf(raw)).toBe(expected)
  }
  expect(() => signatureOf('0x02c0')).toThrow('legacy transaction')
  expect(() => signatureOf('0xf8')).toThrow('too early')
})

test('CSV quotes cells, and texts that a spreadsheet would run', () => {
  const rows = [
    { a: '=1+1', b: 'x,"y"' },
    { a: '-5', c: { d: 1n } },
  ]
  expect(toCsv(rows)).toBe(`a,b,c\r\n'=1+1,"x,""y""",\r\n-5,,"{""d"":""1""}"\r\n`)
})

test('pasted headers are lines or JSON', () => {
  expect(parseHeaders('Webhook-Id: a:b\nwebhook-timestamp : 12\n\n')).toEqual({
    'webhook-id': 'a:b',
    'webhook-timestamp': '12',
  })
  expect(parseHeaders('{"Webhook-Id":["a","b"]}')).toEqual({ 'webhook-id': 'a b' })
})

test('amounts have the unit of their asset', () => {
  const chain = { symbol: 'TON', decimals: 9 }
  expect(unitOf(chain, undefined, {})).toEqual({ symbol: 'TON', decimals: 9 })
  const erc20 = { contract_address: '0x', name: 'Dollar', symbol: 'USD', decimals: 6 }
  expect(unitOf(chain, undefined, { erc20 })).toEqual({ symbol: 'USD', decimals: 6 })
  expect(unitOf(chain, 'EQ…', undefined)).toEqual({ symbol: 'units', decimals: 0 })
})

test('the line of a balance is exact, oldest first, with one value per second', () => {
  const at = (second: number, change: string, balance: string) => ({
    ...{ transfer_time: `2026-01-01T00:00:0${second}.500Z`, change, balance },
  })
  const line = balanceLine(
    [at(9, '-1', '4'), at(3, '2', '5'), at(3, '3', '3'), at(1, '0', '0')],
    18,
  )
  const begin = Date.parse('2026-01-01T00:00:00Z') / 1000
  expect(line.times).toEqual([0, 1, 3, 9].map((second) => begin + second))
  expect(line.texts).toEqual(['0', '0', '0.000000000000000005', '0.000000000000000004'])
  expect(balanceLine([], 18)).toEqual({ times: [], values: [], texts: [] })
})

test('a replacement pays at least a tenth more', () => {
  for (const price of ['1', '7', '8', '1000000007', '123456789012345678901234567890']) {
    const more = BigInt(replacementPrice(price))
    expect([price, more * 10n >= BigInt(price) * 11n]).toEqual([price, true])
  }
  expect(replacementPrice('8000000000')).toBe('9000000000')
})

test('the search of the documents has names before headings before texts', () => {
  const operation = (name: string, summary: string) => ({
    ...{ key: `c/${name}`, chain: 'c', name, summary, description: summary },
  })
  const section = (heading: string, text: string) => ({
    ...{ name: 'webhooks', title: 'Webhooks', heading, id: heading.toLowerCase(), text },
  })
  const found = findInDocs('retry', {
    operations: [operation('ListWallets', 'No word of it.'), operation('RetryWebhookHistory', '')],
    sections: [
      section('Bounds', 'a retry comes later'),
      section('Retry', ''),
      section('Other', ''),
    ],
  })
  expect(found.map(({ to }) => to)).toEqual([
    'docs/api/c/RetryWebhookHistory',
    'docs/guide/webhooks#retry',
    'docs/guide/webhooks#bounds',
  ])
  expect(findInDocs('no such words', { operations: [], sections: [] })).toEqual([])
})

test('only https links lead to an explorer', () => {
  const link = (explorer_url: string) => explorerLink({ explorer_url }, 'tx', '0x1"')
  expect(link('https://etherscan.io/')).toBe('https://etherscan.io/tx/0x1%22')
  expect(link('')).toBeUndefined()
  expect(link('javascript:alert(1)//https://')).toBeUndefined()
})

test('a gap in the metrics breaks the lines', () => {
  const point = (time: string) => ({
    time,
    request_count: 120,
    error_count: 6,
    refused_count: 0,
    gateway_count: 60,
    cache_hit_count: 3,
    cache_miss_count: 1,
    delivery_count: 2,
    delivery_failed_count: 0,
    p50_ms: 1,
    p99_ms: 2,
  })
  const { times, requests, latest } = metricSeries(
    [point('2026-01-01T01:00:00.000Z'), point('2026-01-01T00:00:00.000Z')],
    60,
  )
  expect(times).toHaveLength(3)
  expect(requests).toEqual([2, null, 2])
  expect(latest).toMatchObject({ requests: 2, errorRate: 0.05, hitRate: 0.75 })
})

test('usage has every day of a week from its first day on, and every day between', () => {
  const row = { api_key_hint: '', chain: 'c', network: '', method: 'm', calls: 1 }
  const on = (...days: string[]) =>
    usageDays(days.map((day) => ({ ...row, day, errors: 0, refused: 0 })))
  expect(on()).toEqual([])
  expect([on('2026-03-02').length, on('2026-03-02')[0]]).toEqual([7, '2026-02-24'])
  expect(on('2026-03-10', '2026-03-01')).toHaveLength(10)
})

test('usage is summed and sorted', () => {
  const row = {
    api_key_hint: 'k',
    chain: 'c',
    network: '',
    day: '2026-01-01',
    errors: 1,
    refused: 0,
  }
  const rows = [
    { ...row, method: 'A', calls: 1 },
    { ...row, method: 'B', calls: 5 },
    { ...row, method: 'A', calls: 2 },
  ]
  expect(
    sumUsage(rows, ({ method }) => [method]).map(({ names, calls }) => [...names, calls]),
  ).toEqual([
    ['B', 5],
    ['A', 3],
  ])
})

test('JSON-RPC texts are checked before they are sent', () => {
  expect(rpcBody('[{"method":"eth_call"}]').isSubscription).toBe(false)
  expect(rpcBody('{"method":"eth_subscribe"}').isSubscription).toBe(true)
  expect(rpcBody('{"method":"eth_newBlockFilter"}').isSubscription).toBe(true)
  expect(() => rpcBody('{}')).toThrow('method')
})

test('the reference is read from OpenAPI', () => {
  const { operations, find } = readReference({
    paths: {
      '/v1/c/ListWallets': { post: { summary: 'List.', tags: ['Wallets'], 'x-extension': true } },
      '/v1/c/mainnet/other': { post: {} },
    },
  })
  expect(operations).toHaveLength(1)
  expect(find('c', 'ListWallets')).toMatchObject({ tag: 'Wallets', isExtension: true })
})

test('the history of the JSON-RPC playground is bounded in entries and in size', () => {
  const entry = (id: number, size: number) => ({
    ...{ id, request: '', answer: 'x'.repeat(size), ms: 1, isError: false },
  })
  let entries: ReturnType<typeof withEntry> = []
  for (let id = 0; id < 40; id++) entries = withEntry(entries, entry(id, 10))
  expect(entries.map(({ id }) => id)).toEqual(Array.from({ length: 30 }, (_, at) => 39 - at))
  expect(withEntry(entries, entry(40, 2_000_000)).map(({ id }) => id)).toEqual([40])
})
