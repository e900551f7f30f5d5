import { describe, expect, it } from 'vitest'
import { serverRoles } from '../../src/app/config/server-roles.ts'
import { startTestApp, type TestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { startReceiver } from '../webhooks/receiver.ts'

// One installation of four processes with different roles on one database.
const chains = createScriptedChains()
const upstreams = [{ url: 'http://127.0.0.1:9' }]
const startWith = (roles: readonly string[], beside?: TestApp) =>
  startTestApp({
    ...(beside && { beside }),
    chains,
    config: {
      server: { roles },
      chains: { c: { networks: { mainnet: { upstreams } } } },
      webhooks: { allow_http: true, allowed_networks: ['127.0.0.0/8'] },
    } as never,
  })
const tracker = await startWith(['tracker', 'sender'])
const api = await startWith(['api'], tracker)
const gateway = await startWith(['gateway'], tracker)
const courier = await startWith(['courier', 'console'], tracker)
const tenant = await api.createTenant()
const call = async (operation: string, body: object) => {
  const { status, json } = await api.call(tenant.member, operation, body)
  expect([status, json]).toEqual([200, json])
  return json
}
const get = (app: TestApp, path: string) => app.send(path, { method: 'GET' })
const rpc = (app: TestApp) =>
  app.send(`/c/mainnet/v1/${tenant.member.api_key}`, {
    headers: { 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"web3_clientVersion","params":[]}',
  })

describe('processes with different roles', () => {
  it('do the work of one: registered here, tracked there, delivered by a third', async () => {
    const receiver = await startReceiver()
    const address = `0x${'5e'.repeat(20)}`
    const { wallet_id } = await call('c/RegisterWallet', { name: 'Treasury' })
    await call('c/RegisterAddress', { wallet_id, address })
    await call('c/RegisterWebhook', { webhook_endpoint: receiver.url, confirmation: 1 })
    const parsed = chains.c.parseAddress(address)
    if (!parsed.ok) throw new Error(parsed.detail)
    chains.c.mine([{ movements: [{ to: parsed.bytes, value: 5n }] }])
    chains.c.mine()
    await waitFor('the notification', () => receiver.received.length > 0)
    const { transfers } = await call('c/ListTransfers', { wallet_id })
    expect(transfers).toHaveLength(1)
  })

  it('refuse what they do not serve with a clear problem', async () => {
    const refused = { status: 421, json: { reason: 'ROLE_NOT_SERVED' } }
    for (const app of [tracker, gateway, courier])
      expect(await app.call(tenant.member, 'c/ListWallets', {})).toMatchObject(refused)
    for (const app of [tracker, api, courier])
      expect(await rpc(app)).toMatchObject({
        status: 421,
        json: { error: { data: { reason: 'ROLE_NOT_SERVED' } } },
      })
    expect((await rpc(gateway)).status).not.toBe(421)
    expect(await get(gateway, '/')).toMatchObject(refused)
    // 404 where the console was not built.
    expect((await get(courier, '/')).status).not.toBe(421)
    expect((await get(api, '/')).status).toBe(302)
  })

  it('answer /ready for each role that they have', async () => {
    for (const [app, roles] of [
      [tracker, ['tracker', 'sender']],
      [api, ['api']],
      [gateway, ['gateway']],
      [courier, ['courier', 'console']],
    ] as const) {
      expect((await get(app, '/ready')).status).toBe(200)
      const ready = await Promise.all(
        serverRoles.map(async (role) =>
          (await get(app, `/ready/${role}`)).status === 200 ? role : '',
        ),
      )
      expect(ready.filter(Boolean)).toEqual(
        serverRoles.filter((role) => roles.includes(role as never)),
      )
    }
  })

  it('show what they run in /status and /metrics', async () => {
    const shown = async (app: TestApp) => {
      const { json } = await app.admin('/status')
      return [json.roles, 'limits' in json, 'webhooks' in json, 'tracking' in json.chains.c]
    }
    expect(await shown(tracker)).toEqual([['tracker', 'sender'], false, false, true])
    expect(await shown(api)).toEqual([['api'], true, false, false])
    expect(await shown(gateway)).toEqual([['gateway'], true, false, false])
    expect(await shown(courier)).toEqual([['courier', 'console'], false, true, false])
    const { text } = await gateway.admin('/metrics')
    expect(text).not.toMatch(/portolan_(webhook|tracker)_/)
  })
})
