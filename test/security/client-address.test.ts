import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import WebSocket from 'ws'
import { startTestGateway } from '../gateway/gateway.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { openRaw } from '../helpers/raw-http.ts'
import { authHeaders, nextNonce } from '../helpers/signer.ts'

const node = await startStubNode()
const logging = { level: 'debug' as const }
const behind = await startTestGateway([node.url], {
  logging,
  server: { trust_proxy: ['127.0.0.0/8', '10.0.0.0/8'], connections_per_address: 3 },
})
const open = await startTestGateway([node.url], { logging, beside: behind })
const twoHops = await startTestGateway([node.url], {
  ...{ logging, beside: behind, server: { trust_proxy: 2 } },
})
const oneHop = await startTestGateway([node.url], {
  ...{ logging, beside: behind, server: { trust_proxy: 1 } },
})
const { member, organization_id } = behind.tenant
const body = JSON.stringify({ organization_id })

// The first entry is the client's own claim; the last one a proxy that is trusted.
const claim = 'X-Forwarded-For: 203.0.113.9, ::ffff:198.51.100.7, 10.0.0.2'
const call = '{"jsonrpc":"2.0","id":1,"method":"net_version"}'

/** What each path of a request to the service needs beside the common lines. */
const paths = { 'the bare socket': '', "Node's server": 'TE: trailers\r\n' }

const raw = async (service: typeof behind, head: string, body: string) => {
  const connection = await openRaw(service.base_url)
  connection.write(
    `${head}host: x\r\ncontent-type: application/json\r\n${claim}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  const [answer] = await connection.answers(1)
  connection.destroy()
  return answer
}
/** The client of each line of the log that names this request. */
const clientsOf = (service: typeof behind, request_id: string) =>
  service.log
    .lines()
    .filter((line) => line.request_id === request_id)
    .map(({ msg, client }) => `${msg}: ${client}`)

describe.each([
  ['behind trusted proxies is the one that they have seen', behind, '198.51.100.7'],
  ['behind two proxies is the one that the first has seen', twoHops, '198.51.100.7'],
  ['behind one proxy is the one that it has seen', oneHop, '10.0.0.2'],
  ['without a trusted proxy is that of the connection', open, '127.0.0.1'],
] as const)('the address of a client %s', (_how, service, expected) => {
  it.each(Object.entries(paths))('for an operation on %s', async (_path, more) => {
    const path = '/v1/admin/ListEffectiveRateLimits'
    const request_id = `op-${expected}-${more.length}`
    const signed = authHeaders(member, { path, body, nonce: nextNonce() })
    const lines = Object.entries({ ...signed, 'x-request-id': request_id })
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const answer = await raw(service, `POST ${path} HTTP/1.1\r\n${more}${head}`, body)
    expect(answer).toMatchObject({ status: 200 })
    await expect
      .poll(() => clientsOf(service, request_id))
      .toEqual([`request finished: ${expected}`])
  })

  it.each(Object.entries(paths))('for a gateway call on %s', async (_path, more) => {
    const request_id = `rpc-${expected}-${more.length}`
    const head = `POST /c/mainnet/v1/${member.api_key} HTTP/1.1\r\n${more}x-request-id: ${request_id}\r\n`
    expect(await raw(service, head, call)).toMatchObject({ status: 200 })
    await expect.poll(() => clientsOf(service, request_id)).toEqual([`gateway call: ${expected}`])
  })

  it('for a WebSocket', async () => {
    const [name = '', value = ''] = claim.split(': ')
    const url = `${service.app.ws_url}/c/mainnet/v1/ws/${member.api_key}`
    const ws = new WebSocket(url, { headers: { [name]: value } })
    await once(ws, 'open')
    ws.terminate()
    const opened = service.log.lines().filter(({ msg }) => msg === 'WebSocket opened')
    expect(opened.map(({ client }) => client)).toEqual([expected])
  })
})

it('the log of a request shows no path that may hold a key', async () => {
  await open.send(`/c/mainnet/v2/${member.api_key}`)
  await expect.poll(() => open.log.lines().find(({ route }) => route === 'none')).toBeDefined()
  expect(open.log.text()).not.toContain(member.api_key)
})

describe('through a trusted proxy', () => {
  const opened: WebSocket[] = []
  const connect = async (client: string) => {
    const url = `${behind.app.ws_url}/c/mainnet/v1/ws/${member.api_key}`
    const ws = new WebSocket(url, { headers: { 'x-forwarded-for': client } })
    opened.push(ws.on('error', () => {}))
    return await Promise.race([
      once(ws, 'unexpected-response').then(([, response]) => response.statusCode as number),
      once(ws, 'open').then(() => 101),
    ])
  }

  it('every client has its own number of WebSockets, and the proxy has any number', async () => {
    const statuses: number[] = []
    for (let time = 0; time < 5; time++) statuses.push(await connect('203.0.113.20'))
    expect(statuses).toEqual([101, 101, 101, 429, 429])
    expect(await connect('203.0.113.21')).toBe(101)
    for (const ws of opened) ws.terminate()
    await expect.poll(() => connect('203.0.113.20')).toBe(101)
    for (const ws of opened) ws.terminate()
  })

  it('no client is limited by the connections of the proxy', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => openRaw(behind.base_url)))
    for (const one of all) one.write('GET /health HTTP/1.1\r\nhost: x\r\n\r\n')
    for (const one of all) expect((await one.answers(1))[0]?.status).toBe(200)
    for (const one of all) one.destroy()
  })
})
