import { once } from 'node:events'
import { expect, test } from 'vitest'
import WebSocket from 'ws'
import { readAuditEvents } from '../../src/storage/audit/audit.ts'
import { startTestGateway } from '../gateway/gateway.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { shiftedClock } from '../helpers/app.ts'

const clock = shiftedClock()
const node = await startStubNode()
const service = await startTestGateway([node.url], {
  clock,
  security: { auth_failures_burst: 8, auth_failures_per_second: 1, auth_failures_delay_ms: 0 },
  server: { trust_proxy: 1 },
})
const { db } = service.database
const { organization_id } = service.tenant
const owner = await service.createPair(organization_id, 'ROLE_OWNER')
const call = '{"jsonrpc":"2.0","id":1,"method":"net_version"}'

/** Counts go by minute, so that each of them begins with one. */
const nextMinute = () => clock.shift(60_000 - (clock.now() % 60_000))

const events = async () =>
  (await Array.fromAsync(readAuditEvents(db, { after: 0 })))
    .map(({ detail, ...event }) => ({ ...event, client: JSON.parse(detail ?? '{}').client }))
    .filter(({ result }) => result === 'AUDIT_RESULT_REFUSED')
const countsOf = async (client: string) =>
  (await events())
    .filter((event) => event.client === client)
    .map(({ service, operation, reason, event_count }) => ({
      ...{ service, operation, reason, event_count },
    }))

const post = async (key: string, client: string, isBearer: boolean) => {
  const headers = { 'x-forwarded-for': client }
  const { status } = isBearer
    ? await service.post(call, {
        path: '/c/mainnet/v1',
        headers: { ...headers, authorization: `Bearer ${key}` },
      })
    : await service.post(call, { key, headers })
  return status
}
const handshake = async (key: string, client: string, isBearer: boolean) => {
  const url = `${service.app.ws_url}/c/mainnet/v1/ws`
  const ws = new WebSocket(isBearer ? url : `${url}/${key}`, {
    headers: { 'x-forwarded-for': client, ...(isBearer && { authorization: `Bearer ${key}` }) },
  })
  const status = await Promise.race([
    once(ws, 'unexpected-response').then(([, response]) => response.statusCode as number),
    once(ws, 'open').then(() => 101),
  ])
  ws.on('error', () => {}).terminate()
  return status
}

const ways = [
  ['HTTP, the key in the address', '192.0.2.1', (key, client) => post(key, client, false)],
  ['HTTP, the key as Bearer', '192.0.2.2', (key, client) => post(key, client, true)],
  [
    'WebSocket, the key in the address',
    '192.0.2.3',
    (key, client) => handshake(key, client, false),
  ],
  ['WebSocket, the key as Bearer', '192.0.2.4', (key, client) => handshake(key, client, true)],
] as const satisfies [string, string, (key: string, client: string) => Promise<number>][]

test.each(ways)(
  'bad gateway keys are counted by client and minute: %s',
  async (_way, client, attempt) => {
    nextMinute()
    for (let guess = 0; guess < 5; guess++)
      expect(await attempt(`plk_guess_that_is_not_kept_${guess}`, client)).toBe(401)
    expect(await attempt('not-a-key', client)).toBe(401)
    nextMinute()
    const expected = {
      service: 'c',
      operation: 'Authenticate',
      reason: 'INVALID_KEY',
      event_count: 6,
    }
    await expect.poll(() => countsOf(client)).toEqual([expected])
  },
)

test('guesses beyond the budget of their address are counted as well', async () => {
  const client = '192.0.2.9'
  nextMinute()
  for (let guess = 0; guess < 30; guess++)
    await post(`plk_more_guesses_${guess}`, client, guess % 2 > 0)
  for (let guess = 0; guess < 10; guess++)
    await handshake(`plk_more_guesses_${guess}`, client, false)
  nextMinute()
  const total = async () => (await countsOf(client)).reduce((sum, one) => sum + one.event_count, 0)
  await expect.poll(total).toBe(40)
  const reasons = (await countsOf(client)).map(({ reason }) => reason)
  expect(reasons.toSorted()).toEqual(['INVALID_KEY', 'TOO_MANY_FAILURES'])
})

test('a known key where it may not be used is counted for its organization', async () => {
  const { json } = await service.call(owner, 'admin/CreateCredential', {
    organization_id,
    name: 'elsewhere',
    allowed_client_networks: ['198.51.100.0/24'],
  })
  const { api_key, credential_id } = json.credential
  nextMinute()
  for (const [, , attempt] of ways) expect(await attempt(api_key, '192.0.2.50')).toBe(403)
  nextMinute()
  const found = async () => (await events()).filter((event) => event.credential_id !== null)
  await expect.poll(found).toHaveLength(1)
  expect(await found()).toMatchObject([
    {
      actor_type: 'ACTOR_TYPE_CREDENTIAL',
      credential_id,
      organization_id,
      service: 'c',
      operation: 'Gateway',
      reason: 'CLIENT_NETWORK_NOT_ALLOWED',
      event_count: 4,
      client: '192.0.2.50',
    },
  ])
})

test('no guess is in the log', async () => {
  const text = JSON.stringify(await Array.fromAsync(readAuditEvents(db, { after: 0 })))
  expect(text).not.toContain('plk_guess')
  expect(text).not.toContain('plk_more')
  expect(text).not.toContain('not-a-key')
})
