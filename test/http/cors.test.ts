import { describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'

const allowed = 'https://app.example.org'
const service = await startTestApp({
  config: { server: { cors_origins: [allowed, 'http://localhost:*'] } },
})
const tenant = await service.createTenant()
const operation = '/v1/c/ListWallets'
const gateway = `/c/mainnet/v1/${tenant.member.api_key}`
const corsHeaders = (headers: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => /^access-control|^vary$/.test(name)),
  )
const preflight = (path: string, origin: string) =>
  service.send(path, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST' },
  })

describe.each([
  ['an operation', operation],
  ['the gateway', gateway],
])('%s', (_, path) => {
  it.each([allowed, 'http://localhost:5173', 'http://localhost'])(
    'may be called by a page of %s',
    async (origin) => {
      const asked = await preflight(path, origin)
      expect(asked.status).toBe(204)
      expect(corsHeaders(asked.headers)).toEqual({
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'POST',
        'access-control-allow-headers':
          'content-type, x-request-id, authorization, idempotency-key, x-api-key, x-api-nonce, x-api-signature',
        'access-control-max-age': '7200',
        vary: 'origin',
      })
      const answer = await service.send(path, {
        body: '{}',
        headers: { origin, 'content-type': 'application/json' },
      })
      expect(corsHeaders(answer.headers)).toEqual({
        'access-control-allow-origin': origin,
        'access-control-expose-headers': expect.stringContaining('x-request-id, retry-after'),
        vary: 'origin',
      })
    },
  )

  it.each([
    'https://app.example.org.evil.example',
    'https://app.example.org:8443',
    'http://app.example.org',
    'http://localhost.evil.example:80',
    'https://localhost:5173',
    'null',
  ])('reveals nothing to a page of %s', async (origin) => {
    const asked = await preflight(path, origin)
    expect(asked.status).toBeGreaterThanOrEqual(400)
    expect(corsHeaders(asked.headers)).toEqual({ vary: 'origin' })
    const answer = await service.send(path, {
      body: '{}',
      headers: { origin, 'content-type': 'application/json' },
    })
    expect(corsHeaders(answer.headers)).toEqual({ vary: 'origin' })
  })
})

it('a call with a signature is answered as without an origin', async () => {
  const { status, json, headers } = await service.call(
    tenant.member,
    'c/ListWallets',
    {},
    {
      origin: allowed,
    },
  )
  expect([status, json.wallets]).toEqual([200, []])
  expect(headers['access-control-allow-origin']).toBe(allowed)
})

it.each(['/status', '/docs', '/openapi.json', '/'])(
  'pages of other origins cannot read %s',
  async (path) => {
    const { headers } = await service.send(path, { method: 'GET', headers: { origin: allowed } })
    const { vary, ...cors } = corsHeaders(headers)
    expect(cors).toEqual({})
    expect(`${vary ?? ''}`).not.toContain('origin')
  },
)

it('any origin may be allowed, and by default none is', async () => {
  const open = await startTestApp({
    beside: service,
    config: { server: { cors_origins: ['*'] } },
  })
  const headers = { origin: 'null', 'content-type': 'application/json' }
  const answer = await open.send(operation, { body: '{}', headers })
  expect(answer.headers['access-control-allow-origin']).toBe('*')
  const closed = await startTestApp({ beside: service })
  expect(corsHeaders((await closed.send(operation, { body: '{}', headers })).headers)).toEqual({})
})
