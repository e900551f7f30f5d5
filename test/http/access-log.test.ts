import { once } from 'node:events'
import { expect, it } from 'vitest'
import WebSocket from 'ws'
import type { Overrides } from '../../src/app/config/schema.ts'
import { startTestGateway } from '../gateway/gateway.ts'
import { startStubNode } from '../gateway/stub-node.ts'

const node = await startStubNode()
const upstreams = [{ url: node.url, name: 'node-0' }]
const chains = { c: { networks: { mainnet: { upstreams } } } } as unknown as Overrides['chains']
const service = await startTestGateway([node.url], {
  logging: { level: 'info', gateway_share: 1 },
})
const { member, organization_id } = service.tenant

/** The lines of a request, as a search for its id finds them. */
const linesOf = (request_id: string) =>
  service.log.lines().filter((line) => line.request_id === request_id)

const rpc = (key: string, request_id: string) =>
  service.send(`/c/mainnet/v1/${key}`, {
    headers: { 'content-type': 'application/json', 'x-request-id': request_id },
    body: '{"jsonrpc":"2.0","id":1,"method":"net_version"}',
  })

it.each([
  ['the bare socket', {}],
  ["Node's server", { te: 'trailers' }],
])(
  'finds the request id of a refused operation in its body and in one line: %s',
  async (_, more) => {
    const answer = await service.call(member, 'c/GetWallet', { wallet_id: 'none' }, more)
    const { request_id, reason, status } = answer.json
    expect(answer.headers['x-request-id']).toBe(request_id)
    await expect
      .poll(() => linesOf(request_id))
      .toMatchObject([
        {
          ...{ level: 'info', msg: 'request finished', organization_id, operation: 'GetWallet' },
          ...{ credential_id: expect.any(String), chain: 'c', status, reason },
          ...{ bytes_in: 20, bytes_out: answer.text.length, duration_ms: expect.any(Number) },
        },
      ])
  },
)

it('has a line for each gateway call over HTTP and WebSocket', async () => {
  await rpc(member.api_key, 'over-http')
  await rpc('plk_AAAAAAAAAAAAAAAAAAAAAAAA', 'bad-key')
  const ws = new WebSocket(`${service.app.ws_url}/c/mainnet/v1/ws/${member.api_key}`, {
    headers: { 'x-request-id': 'over-ws' },
  })
  await once(ws, 'open')
  ws.send('{"jsonrpc":"2.0","id":1,"method":"net_version"}')
  await once(ws, 'message')
  ws.terminate()
  const done = { msg: 'gateway call', organization_id, method: 'net_version', status: 200 }
  expect(linesOf('over-http')).toMatchObject([done])
  expect(linesOf('over-ws').at(-1)).toMatchObject({ ...done, transport: 'websocket' })
  expect(linesOf('bad-key')).toMatchObject([{ status: 401, reason: 'INVALID_KEY' }])
})

it('writes no line of calls after a reload with shares of 0', async () => {
  await service.reload({ chains, logging: { operation_share: 0, gateway_share: 0 } })
  const before = service.log.lines().length
  await rpc(member.api_key, 'not-sampled')
  const answer = await service.call(member, 'c/GetWallet', { wallet_id: 'none' })
  expect(linesOf('not-sampled')).toEqual([])
  expect(linesOf(answer.json.request_id)).toEqual([])
  expect(
    service.log
      .lines()
      .slice(before)
      .map(({ msg }) => msg),
  ).not.toContain('request finished')
})
