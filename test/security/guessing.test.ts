import { once } from 'node:events'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import WebSocket from 'ws'
import { startTestGateway } from '../gateway/gateway.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import type { Answer } from '../helpers/app.ts'
import { authHeaders, nextNonce, type Pair } from '../helpers/signer.ts'

const burst = 20
const node = await startStubNode()
const service = await startTestGateway([node.url], {
  // Thousands of guesses would take minutes if they were held back.
  security: {
    auth_failures_burst: burst,
    auth_failures_per_second: 1,
    auth_failures_delay_ms: 0,
  },
  server: { trust_proxy: 1 },
})
const { member } = service.tenant
const operation = '/v1/admin/ListEffectiveRateLimits'
const body = JSON.stringify({ organization_id: service.tenant.organization_id })
const call = '{"jsonrpc":"2.0","id":1,"method":"net_version"}'

let guesses = 0
const guess = (): Pair => ({ api_key: `plk_guess${guesses++}`, api_secret: 'pls_guess' })
const signed = (pair: Pair, client: string) =>
  service.send(operation, {
    body,
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': client,
      ...authHeaders(pair, { path: operation, body, nonce: nextNonce() }),
    },
  })
const rpc = (key: string, client: string) =>
  service.post(call, { key, headers: { 'x-forwarded-for': client } })
const handshake = async (key: string, client: string) => {
  const ws = new WebSocket(`${service.app.ws_url}/c/mainnet/v1/ws/${key}`, {
    headers: { 'x-forwarded-for': client },
  })
  const status = await Promise.race([
    once(ws, 'unexpected-response').then(([, response]) => response.statusCode as number),
    once(ws, 'open').then(() => 101),
  ])
  ws.on('error', () => {}).terminate()
  return status
}
/** How often credentials were looked up in the database: the service runs in this process. */
let lookUps = 0
const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  const [first] = args as [string | { text?: string } | undefined]
  const text = typeof first === 'string' ? first : first?.text
  if (text?.includes('"api_key_hash" =')) lookUps++
  return query.apply(this, args)
} as never
afterAll(() => {
  pg.Client.prototype.query = query as never
})

const inTurns = async <made>(count: number, make: () => Promise<made>): Promise<made[]> => {
  const made: made[] = []
  for (let left = count; left > 0; left -= 30)
    made.push(...(await Promise.all(Array.from({ length: Math.min(30, left) }, make))))
  return made
}
const countsOf = (values: readonly unknown[]) =>
  Object.fromEntries(
    Map.groupBy(values, String)
      .entries()
      .map(([key, all]) => [key, all.length]),
  )

/** What the clock may have given back while the test ran. */
const slack = 15

describe.each([
  [1, 'operations', async (client: string) => (await signed(guess(), client)).status],
  [2, 'the gateway', async (client: string) => (await rpc(guess().api_key, client)).status],
  [3, 'WebSockets', (client: string) => handshake(guess().api_key, client)],
] as const)('guessed keys, %i: for %s', (last, _what, attempt) => {
  const attacker = `198.51.100.${last}`

  it('cost no look-up at all, and beyond the budget of their address they get 429', async () => {
    await signed(member, attacker)
    await rpc(member.api_key, attacker)
    lookUps = 0
    const { 401: refused = 0, 429: limited = 0 } = countsOf(
      await inTurns(900, () => attempt(attacker)),
    )
    expect(refused + limited).toBe(900)
    expect(refused).toBeGreaterThanOrEqual(burst)
    expect(refused).toBeLessThan(burst + slack)
    // The keys carry no MAC of the installation, and no credential has a key without one.
    expect(lookUps).toBe(0)
  })

  it('do not stop keys in use from the same address, which cost no look-up', async () => {
    lookUps = 0
    const answers = await Promise.all(
      [signed(member, attacker), rpc(member.api_key, attacker)].flatMap((one) => [one, one]),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await handshake(member.api_key, attacker)).toBe(101)
    expect(lookUps).toBe(0)
  })

  it('do not stop new keys of other addresses', async () => {
    const pair = await service.createPair(service.tenant.organization_id, 'ROLE_MEMBER')
    const other = `203.0.113.${last}`
    expect((await signed(pair, other)).status).toBe(200)
    expect((await rpc(pair.api_key, other)).status).toBe(200)
  })
})

it('a wrong signature for a known key is answered like an unknown key, before and after the limit', async () => {
  const client = '192.0.2.44'
  const wrong = { ...member, api_secret: 'pls_wrong' }
  const shape = ({ status, headers, json }: Answer) => {
    const { request_id: _, ...body } = json
    return { status, body, retry: headers['retry-after'] }
  }
  const first = [await signed(wrong, client), await signed(guess(), client)].map(shape)
  expect(first[0]).toEqual(first[1])
  expect(first[0]?.status).toBe(401)
  await inTurns(burst * 3, () => signed(guess(), client))
  const last = [await signed(wrong, client), await signed(guess(), client)].map(shape)
  expect(last[0]).toEqual(last[1])
  expect(last[0]).toMatchObject({ status: 429, body: { reason: 'TOO_MANY_FAILURES' } })
})

it('keys that cannot be any and requests without credentials cost no look-up and no budget', async () => {
  const client = '192.0.2.45'
  lookUps = 0
  const answers = await inTurns(burst * 3, () =>
    signed({ api_key: "plk_' or 1=1", api_secret: 'x' }, client),
  )
  expect(countsOf(answers.map(({ status }) => status))).toEqual({ 401: burst * 3 })
  expect(lookUps).toBe(0)
})

it('failures are counted by kind, and logged once for each address', async () => {
  const { text } = await service.admin('/metrics')
  expect(text).toMatch(/failures_total\{kind="operation",outcome="limited"\} \d{3}/)
  expect(text).toMatch(/failures_total\{kind="gateway",outcome="refused"\} \d{2}/)
  const lines = service.log.lines().filter(({ msg }) => msg.startsWith('too many failed'))
  expect(countsOf(lines.map(({ client }) => client))).toEqual({
    '198.51.100.1': 1,
    '198.51.100.2': 1,
    '198.51.100.3': 1,
    '192.0.2.44': 1,
  })
})
