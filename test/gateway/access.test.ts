import { describe, expect, it } from 'vitest'
import { setEnabled } from '../../src/domain/admin/operator.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { startTestGateway, type TestGateway } from './gateway.ts'
import { startStubNode } from './stub-node.ts'

const node = await startStubNode()
const gateway = await startTestGateway([node.url])
const second = await startTestGateway([node.url], { beside: gateway })

const single = '{"jsonrpc":"2.0","id":1,"method":"net_version"}'
const batch = `[${single},${single}]`
const statusOf = async (service: TestGateway, key: string) =>
  (await service.post(single, { key })).status

describe.each([
  ['single', single],
  ['batch', batch],
])('a %s', (_name, body) => {
  it.each([
    ['an unknown key', { key: 'plk_AAAAAAAAAAAAAAAAAAAAAAAA' }, 401, 'INVALID_KEY'],
    ['no key of any form', { key: 'x%20y' }, 401, 'INVALID_KEY'],
    ['a key of two hundred letters', { key: 'k'.repeat(300) }, 401, 'INVALID_KEY'],
  ])('with %s is refused', async (_what, options, status, reason) => {
    const answer = await gateway.post(body, options)
    expect(answer.status).toBe(status)
    expect(answer.json).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32600, message: expect.any(String), data: { source: 'gateway', reason } },
    })
  })

  it.each(['/x/mainnet', '/c/unknown', '/t/mainnet', '/C/mainnet'])(
    'to %s is refused with 404',
    async (path) => {
      const { api_key } = gateway.tenant.member
      const { status, json } = await gateway.post(body, { path: `${path}/v1/${api_key}` })
      expect({ status, reason: json.error.data.reason }).toEqual({
        status: 404,
        reason: 'NETWORK_NOT_FOUND',
      })
    },
  )
})

it('probes a key with net_version', async () => {
  expect(await gateway.rpc('net_version')).toEqual({ jsonrpc: '2.0', id: 1, result: '1' })
  const { api_key } = gateway.tenant.admin
  expect((await gateway.rpc('net_version', [], { key: api_key })).result).toBe('1')
})

it('refuses a deleted credential at once, in every process', async () => {
  const { organization_id, admin } = gateway.tenant
  const pair = await gateway.createPair(organization_id, 'ROLE_MEMBER')
  expect(await statusOf(gateway, pair.api_key)).toBe(200)
  expect(await statusOf(second, pair.api_key)).toBe(200)
  expect((await gateway.call(admin, 'admin/DeleteCredential', pair)).status).toBe(200)
  const options = { timeoutMs: 10_000, everyMs: 5 }
  for (const service of [gateway, second])
    await waitFor('refused', async () => (await statusOf(service, pair.api_key)) === 401, options)
})

it('refuses the keys of a disabled organization at once, and takes them again', async () => {
  const tenant = await gateway.createTenant()
  const { api_key } = tenant.member
  const options = { timeoutMs: 10_000, everyMs: 5 }
  expect(await statusOf(second, api_key)).toBe(200)
  await setEnabled(gateway.installation, tenant.organization_id, false)
  await waitFor('refused', async () => (await statusOf(second, api_key)) === 401, options)
  await setEnabled(gateway.installation, tenant.organization_id, true)
  await waitFor('taken', async () => (await statusOf(second, api_key)) === 200, options)
})

describe('limits', () => {
  const limited = async (per_hour_limit: number) => {
    const tenant = await gateway.createTenant()
    const { organization_id } = tenant
    const limits = { per_second_limit: -1, per_hour_limit, per_day_limit: -1, per_month_limit: -1 }
    const { status } = await gateway.call(gateway.tenant.admin, 'admin/SetRateLimit', {
      organization_id,
      chain: 'c',
      ...limits,
    })
    expect(status).toBe(200)
    return tenant.member.api_key
  }

  it('refuse a call with -32005, 429 and the time to wait', async () => {
    const key = await limited(2)
    const first = await gateway.post(single, { key })
    expect(first.headers.ratelimit).toMatch(/^"hour";r=1;t=\d+$/)
    expect(first.headers['ratelimit-policy']).toBe('"hour";q=2;w=3600')
    expect((await gateway.post(single, { key })).status).toBe(200)
    const { status, headers, json } = await gateway.post(single, { key })
    expect(status).toBe(429)
    const wait = Number(headers['retry-after'])
    expect(wait).toBeGreaterThan(0)
    expect(json.error).toEqual({
      code: -32005,
      message: 'The limit of 2 calls per hour is used up.',
      data: {
        source: 'gateway',
        reason: 'RATE_LIMITED',
        window: 'hour',
        limit: 2,
        retry_after: wait,
      },
    })
  })

  it('admit the first calls of a batch and refuse the rest one by one', async () => {
    const key = await limited(3)
    const calls = [1, 2, 3, 4, 5].map((id) => `{"jsonrpc":"2.0","id":${id},"method":"net_version"}`)
    const { status, json, headers } = await gateway.post(`[${calls.join(',')}]`, { key })
    expect(status).toBe(200)
    expect(
      json.map((one: { id: number; error?: { code: number } }) => [one.id, one.error?.code]),
    ).toEqual([
      [1, undefined],
      [2, undefined],
      [3, undefined],
      [4, -32005],
      [5, -32005],
    ])
    expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    const next = await gateway.post(`[${calls.join(',')}]`, { key })
    expect(next.status).toBe(429)
    expect(next.json.length).toBe(5)
  })

  it('count invalid calls and malformed bodies too', async () => {
    const key = await limited(3)
    expect((await gateway.post('{', { key })).status).toBe(400)
    expect((await gateway.post('[1,2]', { key })).status).toBe(200)
    expect((await gateway.post(single, { key })).status).toBe(429)
  })
})

it('counts usage by key and method, readable with GetUsage', async () => {
  const tenant = await gateway.createTenant()
  const key = tenant.member.api_key
  await gateway.rpc('eth_blockNumber', [], { key })
  await gateway.rpc('evm_blockNumber', [], { key })
  await gateway.rpc('eth_getBalance', ['0x1'], { key })
  await gateway.rpc('no_such_method', [], { key })
  const { organization_id } = tenant
  // biome-ignore lint/suspicious/noExplicitAny: rows of an answer
  let usage: any[] = []
  await waitFor('the counts are stored', async () => {
    const { json } = await gateway.call(tenant.member, 'admin/GetUsage', { organization_id })
    usage = json.usage
    return usage.filter(({ chain }) => chain === 'c').length === 3
  })
  const day = new Date().toISOString().slice(0, 10)
  const row = { api_key_hint: `${key.slice(0, 8)}…`, chain: 'c', network: 'mainnet', day }
  expect(usage.filter(({ chain }) => chain === 'c')).toEqual([
    { ...row, method: 'eth_blockNumber', calls: 2, errors: 0, refused: 0 },
    { ...row, method: 'eth_getBalance', calls: 1, errors: 1, refused: 0 },
    { ...row, method: 'other', calls: 1, errors: 1, refused: 0 },
  ])
  const { json } = await gateway.call(tenant.member, 'admin/GetUsage', {
    organization_id,
    start_day: '2020-01-01',
    end_day: '2020-12-31',
  })
  expect(json.usage).toEqual([])
  const bad = await gateway.call(tenant.member, 'admin/GetUsage', {
    organization_id,
    start_day: '2020-02-30',
  })
  expect(bad.status).toBe(400)
})

it('counts operations beside gateway calls, counts refused ones separately, and agrees with the limits', async () => {
  const tenant = await gateway.createTenant(4)
  const { organization_id, member } = tenant
  const key = member.api_key
  await gateway.call(member, 'c/ListWallets')
  await gateway.call(member, 'c/GetWallet', { wallet_id: 'none' })
  await gateway.post('{', { key })
  await gateway.post(batch, { key })
  await gateway.call(member, 'c/ListWallets')
  await gateway.post(single, { key })
  // biome-ignore lint/suspicious/noExplicitAny: rows of an answer
  let usage: any[] = []
  await waitFor('the counts are stored', async () => {
    const { json } = await gateway.call(gateway.tenant.admin, 'admin/GetUsage', {
      organization_id,
      chain: 'c',
    })
    usage = json.usage
    return usage.reduce((sum, { calls }) => sum + calls, 0) === 7
  })
  const rows = usage.map(({ network, method, calls, errors, refused }) => [
    ...[network, method, calls, errors, refused],
  ])
  expect(rows).toEqual([
    ['', 'GetWallet', 1, 1, 0],
    ['', 'ListWallets', 2, 1, 1],
    ['mainnet', 'net_version', 3, 2, 2],
    ['mainnet', 'other', 1, 1, 0],
  ])
  const admitted = usage.reduce((sum, { calls, refused }) => sum + calls - refused, 0)
  const { json } = await gateway.call(gateway.tenant.admin, 'admin/ListEffectiveRateLimits', {
    organization_id,
    chain: 'c',
  })
  expect(json.effective_rate_limits).toMatchObject([{ chain: 'c', hour_used: admitted }])
  expect(admitted).toBe(4)
})

describe.each(['operations', 'gateway calls'] as const)('large bodies of %s', (kind) => {
  /** A tenant with a limit for the month, which is set before its first call. */
  const open = async (per_month_limit: number) => {
    const { organization_id, member } = await gateway.createTenant()
    const admin = (name: string, body: object = {}) =>
      gateway.call(gateway.tenant.admin, `admin/${name}`, { organization_id, chain: 'c', ...body })
    const others = { per_second_limit: -1, per_hour_limit: -1, per_day_limit: -1 }
    expect((await admin('SetRateLimit', { per_month_limit, ...others })).status).toBe(200)
    let answers = 0
    const send = async (value: unknown) => {
      const params = { jsonrpc: '2.0', id: 1, method: 'no_such', params: [value] }
      const { status } =
        kind === 'operations'
          ? await gateway.call(member, 'c/ListWallets', { value })
          : await gateway.post(JSON.stringify(params), { key: member.api_key })
      answers++
      return status === 429
    }
    /** What the usage and the limits have counted, once all answers are stored. */
    const counted = async () => {
      const sums: Record<string, number> = { calls: 0, errors: 0, refused: 0 }
      await waitFor('the usage is stored', async () => {
        const { usage } = (await admin('GetUsage')).json
        for (const name of Object.keys(sums))
          sums[name] = usage.reduce((sum: number, row: typeof sums) => sum + row[name]!, 0)
        return sums.calls! >= answers
      })
      const { json } = await admin('ListEffectiveRateLimits')
      return { ...sums, month_used: json.effective_rate_limits[0].month_used as number }
    }
    const isCounted = (expected: object) =>
      expect.poll(counted, { timeout: 20_000 }).toEqual(expected)
    return { send, counted, isCounted }
  }

  it('are in the usage where their values are too many, or a pace refuses them', async () => {
    const { send, counted, isCounted } = await open(10_000)
    expect(await send('a'.repeat(100_000))).toBe(false)
    expect(await send(Array(300_000).fill([]))).toBe(false)
    // One for each 16 KiB that is begun.
    const first = { calls: 2, errors: 2, refused: 0, month_used: 7 + 55 }
    await isCounted(first)
    // Another organization is active, so large bodies have a pace.
    await gateway.rpc('net_version')
    const paced = await Promise.all(Array.from({ length: 6 }, () => send('a'.repeat(1_000_000))))
    expect(paced).toContain(true)
    await expect.poll(counted).toMatchObject({ calls: 8, errors: 8, refused: 0 })
    // One of each that was refused by its length, and all of each that was not.
    const least = first.month_used + paced.reduce((sum, isRefused) => sum + (isRefused ? 1 : 61), 0)
    await expect.poll(async () => (await counted()).month_used).toBeGreaterThanOrEqual(least)
    expect((await counted()).month_used).toBeLessThanOrEqual(first.month_used + 6 * 62)
  })

  it('are refused in the usage exactly where the limits have not counted them', async () => {
    const { send, isCounted } = await open(5)
    expect([await send('a'), await send('a')]).toEqual([false, false])
    // Two for its size, which fits, and four for its values, which do not: what it has paid is gone.
    expect(await send(Array(7_000).fill([]))).toBe(true)
    await isCounted({ calls: 3, errors: 3, refused: 0, month_used: 4 })
    expect(await send('a'.repeat(100_000))).toBe(true)
    expect([await send('a'), await send('a')]).toEqual([false, true])
    await isCounted({ calls: 6, errors: 6, refused: 2, month_used: 5 })
  })
})

it('counts a body that cannot be read as refused where the limits refuse it', async () => {
  const { organization_id, member } = await gateway.createTenant(1)
  const key = member.api_key
  expect((await gateway.post(single, { key })).status).toBe(200)
  expect((await gateway.post('{', { key })).status).toBe(400)
  // biome-ignore lint/suspicious/noExplicitAny: rows of an answer
  let usage: any[] = []
  await waitFor('the counts are stored', async () => {
    const request = { organization_id, chain: 'c' }
    usage = (await gateway.call(gateway.tenant.admin, 'admin/GetUsage', request)).json.usage
    return usage.reduce((sum, { calls }) => sum + calls, 0) === 2
  })
  expect(usage.map(({ method, errors, refused }) => [method, errors, refused])).toEqual([
    ['net_version', 0, 0],
    ['other', 1, 1],
  ])
})

it('shows its calls in the metrics, with names of the table only, and never a key', async () => {
  const { text } = await gateway.admin('/metrics')
  expect(text).toMatch(
    /portolan_gateway_calls_total\{chain="c",network="mainnet",method="net_version",outcome="ok"\} \d+/,
  )
  expect(text).toContain('method="other",outcome="unknown_method"')
  expect(text).toContain('portolan_gateway_call_seconds_bucket')
  expect(text).toMatch(/portolan_upstream_up\{[^}]*upstream="node-0"\} 1/)
  expect(text).not.toContain('no_such_method')
  expect(text).not.toContain('plk_')
})
