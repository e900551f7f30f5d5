import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createClient } from '../../client/src/index.ts'
import { startTestApp } from '../helpers/app.ts'
import { authHeaders } from '../helpers/signer.ts'

const service = await startTestApp({ config: { server: { base_path: '/portolan' } } })
const tenant = await service.createTenant()
const { admin } = tenant
const get = (path: string, headers: Record<string, string> = {}) =>
  service.send(path, { method: 'GET', headers })

test('the address of the service has the base path', () => {
  expect(service.base_url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/portolan$/)
  expect(service.app.ws_url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/portolan$/)
})

test('operations are below it, with signatures over the path as sent', async () => {
  const client = createClient({ base_url: service.base_url, ...admin })
  const request = { domain: tenant.domain }
  const { organization } = await client.admin.GetOrganizationByDomain(request)
  expect(organization.organization_id).toBe(tenant.organization_id)
  const body = JSON.stringify(request)
  const call = (sent: string, signed: string) =>
    service.send(sent, {
      body,
      headers: {
        'content-type': 'application/json',
        ...authHeaders(admin, { path: signed, body }),
      },
    })
  const [inner, outer] = [
    '/v1/admin/GetOrganizationByDomain',
    '/portolan/v1/admin/GetOrganizationByDomain',
  ]
  expect((await call(outer, outer)).status).toBe(200)
  expect((await call(outer, inner)).status).toBe(401)
  expect((await call(inner, inner)).status).toBe(404)
  expect((await call('/portolanx/v1/admin/GetOrganizationByDomain', inner)).status).toBe(404)
})

test('documents are below it and link to each other', async () => {
  const page = await get('/portolan/docs')
  expect(page.status).toBe(200)
  const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => String(link))
  expect(links.length).toBeGreaterThan(3)
  for (const link of links.filter((found) => found !== 'data:,')) {
    expect(link).toMatch(/^\/portolan\//)
    expect([link, (await get(link)).status]).toEqual([link, 200])
  }
  const { json } = await get('/portolan/openapi.json')
  expect(json.servers).toEqual([{ url: service.base_url }])
  expect((await get('/docs')).status).toBe(404)
  expect((await get('/openapi.json')).status).toBe(404)
})

test('probes answer with and without it', async () => {
  for (const path of ['/health', '/ready', '/ready/gateway'])
    for (const prefix of ['', '/portolan'])
      expect([prefix + path, (await get(prefix + path)).status]).toEqual([prefix + path, 200])
  expect((await get('/status')).status).toBe(404)
})

test('the gateway and its WebSockets are below it', async () => {
  const rpc = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId' })
  const post = (path: string) =>
    service.send(path, { body: rpc, headers: { 'content-type': 'application/json' } })
  // No chain is configured. Only the gateway has this reason.
  expect((await post('/portolan/c/mainnet/v1/key')).json.error.data.reason).toBe(
    'NETWORK_NOT_FOUND',
  )
  expect((await post('/c/mainnet/v1/key')).json.reason).toBe('ROUTE_NOT_FOUND')
  const { host } = new URL(service.base_url)
  const refusal = (path: string) =>
    new Promise<string>((resolve) => {
      const socket = new WebSocket(`ws://${host}${path}`)
      socket.on('error', () => {})
      socket.on('unexpected-response', (_, response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve(text))
      })
    })
  expect(await refusal('/portolan/c/mainnet/v1/ws/key')).toContain('NETWORK_NOT_FOUND')
  expect(await refusal('/c/mainnet/v1/ws/key')).toContain('ROUTE_NOT_FOUND')
})
