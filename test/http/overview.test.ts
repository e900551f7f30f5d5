import { expect, test } from 'vitest'
import { quantile } from '../../src/domain/overview/metrics.ts'
import { startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'

const chains = createScriptedChains()
const service = await startTestApp({ chains })
const tenant = await service.createTenant()
const { member, admin } = tenant
const call = async (operation: string, body: object = {}, pair = member) => {
  const { status, json } = await service.call(pair, operation, body)
  return { status, ...json }
}

test('GetCurrentCredential shows role and organization', async () => {
  const { credential, organization, embedded } = await call('admin/GetCurrentCredential')
  expect(credential).toMatchObject({ role: 'ROLE_MEMBER', scopes: ['*'] })
  expect(credential).not.toHaveProperty('api_secret')
  expect([organization.domain, embedded]).toEqual([tenant.domain, false])
  const other = await call('admin/GetCurrentCredential', {}, admin)
  expect(other.credential.role).toBe('ROLE_ADMIN')
})

test('ListChains shows heads to all, and lags to administrators', async () => {
  const { number } = chains.c.mine()
  const chainOf = async (pair = member) => {
    const { chains: rows } = await call('admin/ListChains', {}, pair)
    return rows.find(({ chain }: { chain: string }) => chain === 'c')
  }
  await waitFor('the block is tracked', async () => (await chainOf()).block_number === `${number}`)
  expect(await chainOf()).toMatchObject({
    ...{ network: 'mainnet', is_default_network: true, variant: 'C', is_tracked: true },
    ...{ node_head: null, lag_blocks: null, problem: '', health: 'ok' },
    ...{ chain_id: null, symbol: '', explorer_url: '' },
  })
  await waitFor('the lag is known', async () => (await chainOf(admin)).lag_blocks === '0')
})

test('nodes, problems and counts are for administrators', async () => {
  for (const operation of ['ListNodes', 'ListProblems', 'ListMetrics']) {
    const refused = await call(`admin/${operation}`)
    expect([operation, refused.status, refused.reason]).toEqual([
      operation,
      403,
      'PERMISSION_DENIED',
    ])
    expect([operation, (await call(`admin/${operation}`, {}, admin)).status]).toEqual([
      operation,
      200,
    ])
  }
})

test('lists do not wait for other processes where there are none', async () => {
  const begun = performance.now()
  await call('admin/ListNodes', {}, admin)
  await call('admin/ListWebSocketClients')
  // Each used to wait for half a second, and both for a second.
  expect(performance.now() - begun).toBeLessThan(500)
})

test('ListMetrics adds up what processes have written', async () => {
  const minute = new Date(Math.floor(Date.now() / 60_000) * 60_000 - 600_000)
  const insert = (holder: string, requests: number, latency: number[]) =>
    service.database.pool.query(
      `insert into metric_minute values ($1, $2, $3, 1, 0, 5, 0, 3, 2, 4, 1, $4)`,
      [minute, holder, requests, latency],
    )
  const latency = Array.from({ length: 20 }, () => 0)
  await insert('00000000-0000-4000-8000-000000000001', 10, latency.with(4, 10))
  await insert('00000000-0000-4000-8000-000000000002', 20, latency.with(4, 20))
  const seconds = minute.getTime() / 1000
  const range = { start_time: seconds, end_time: seconds }
  const { points, resolution_seconds } = await call('admin/ListMetrics', range, admin)
  expect([resolution_seconds, points]).toEqual([
    60,
    [
      {
        ...{ time: minute.toISOString(), request_count: 30, error_count: 2, refused_count: 0 },
        ...{ gateway_count: 10, gateway_error_count: 0, cache_hit_count: 6, cache_miss_count: 4 },
        ...{ delivery_count: 8, delivery_failed_count: 2, p50_ms: 0.768, p99_ms: 1.019 },
      },
    ],
  ])
  const long = { start_time: seconds - 200_000, end_time: seconds }
  expect((await call('admin/ListMetrics', long, admin)).status).toBe(400)
})

test('members list the methods and WebSockets of their own organization only', async () => {
  const stranger = await service.createTenant()
  const { organization_id } = tenant
  for (const operation of ['admin/ListMethodUsage', 'admin/ListWebSocketClients']) {
    expect((await call(operation, { organization_id })).status).toBe(200)
    const { status } = await call(operation, { organization_id }, stranger.member)
    expect([operation, status]).toEqual([operation, 404])
  }
})

test('a quantile lies within its bucket', () => {
  expect(quantile([], 0.5)).toBeNull()
  expect(quantile([0, 0], 0.5)).toBeNull()
  expect(quantile([100], 0.5)).toBe(0.032)
  expect(quantile([0, 100], 1)).toBe(0.128)
  expect(quantile([99, 1], 0.99)).toBe(0.064)
})

test('ListSearchResults finds what the organization has, by any form', async () => {
  const address = `0x${'5e'.repeat(20)}`
  const { wallet_id } = await call('c/RegisterWallet', { name: 'Treasury of May' })
  await call('c/RegisterAddress', { wallet_id, address })
  const parsed = chains.c.parseAddress(address)
  if (!parsed.ok) throw new Error(parsed.detail)
  chains.c.mine([{ movements: [{ to: parsed.bytes, value: 5n }] }])
  let hash = ''
  await waitFor('the transfer', async () => {
    const { transfers } = await call('c/ListTransfers', { wallet_id })
    hash = transfers[0]?.transaction_hash ?? ''
    return hash !== ''
  })
  const { webhook_id } = await call('c/RegisterWebhook', {
    ...{ webhook_endpoint: 'https://example.org/hook', confirmation: 1 },
  })
  const at = { chain: 'c', network: 'mainnet' }
  const find = async (query: string, pair = member) =>
    (await call('admin/ListSearchResults', { query }, pair)).results
  expect(await find('treasury')).toEqual([
    { kind: 'wallet', ...at, id: wallet_id, title: 'Treasury of May', wallet_id },
  ])
  expect(await find(wallet_id)).toEqual([
    { kind: 'wallet', ...at, id: wallet_id, title: 'Treasury of May', wallet_id },
  ])
  expect(await find(address)).toEqual([
    { kind: 'address', ...at, id: address, title: 'Treasury of May', wallet_id },
  ])
  expect(await find(hash)).toEqual([
    { kind: 'transaction', ...at, id: hash, title: 'Treasury of May', wallet_id },
  ])
  expect(await find(webhook_id)).toEqual([
    { kind: 'webhook', ...at, id: webhook_id, title: 'https://example.org/hook', wallet_id: '' },
  ])
  const stranger = await service.createTenant()
  for (const query of ['treasury', wallet_id, address, hash, webhook_id])
    expect([query, await find(query, stranger.member)]).toEqual([query, []])
  expect(await find(tenant.domain, stranger.admin)).toMatchObject([
    { kind: 'organization', id: tenant.organization_id },
  ])
  expect(await find(tenant.domain, stranger.member)).toEqual([])
})
