import { request as httpRequest } from 'node:http'
import { describe, expect, it } from 'vitest'
import { openRaw, type RawAnswer } from '../helpers/raw-http.ts'
import { authHeaders } from '../helpers/signer.ts'
import { startTestGateway } from './gateway.ts'
import { startStubNode } from './stub-node.ts'

const node = await startStubNode()
const gateway = await startTestGateway([node.url], {
  server: { body_limit_bytes: 100_000 },
  gateway: { body_limit_bytes: 100_000 },
})
const { base_url } = gateway
const { member } = gateway.tenant
const rpcPath = `/c/mainnet/v1/${member.api_key}`
const socketPath = `/c/mainnet/v1/ws/${member.api_key}`
const rpcBody = '{"jsonrpc":"2.0","id":1,"method":"net_version"}'
const operationPath = '/v1/admin/GetOrganizationByDomain'
const operationBody = JSON.stringify({ domain: gateway.tenant.domain })

const ask = async (text: string, count = 1): Promise<RawAnswer[]> => {
  const connection = await openRaw(base_url)
  connection.write(text)
  const answers = await connection.answers(count)
  connection.destroy()
  return answers
}
const headOf = (line: string, headers: Record<string, string | number>) =>
  `${line}\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`
const json = { 'content-type': 'application/json' }
const rpc = (headers: Record<string, string>, target = rpcPath) =>
  headOf(`POST ${target} HTTP/1.1`, { ...headers, ...json, 'content-length': rpcBody.length }) +
  rpcBody
const operation = (headers: Record<string, string>, target = operationPath) =>
  headOf(`POST ${target} HTTP/1.1`, {
    ...headers,
    ...json,
    ...authHeaders(member, { path: operationPath, body: operationBody }),
    'content-length': operationBody.length,
  }) + operationBody
const handshake = {
  host: 'x',
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

describe('a host', () => {
  const good = ['x', 'example.com:80', '127.0.0.1:4000', '[::1]:4000', '[::1]', '']
  it.each(good)('that is one (%j) is taken', async (host) => {
    for (const text of [rpc({ host }), operation({ host })])
      expect((await ask(text))[0]?.status).toBe(200)
  })

  const bad: [string, string][] = [
    ['missing', ''],
    ['doubled', 'host: x\r\nhost: x'],
    ['doubled in another spelling', 'host: x\r\nHOST: y'],
    ['with a space', 'host: a b'],
    ['with a path', 'host: a/b'],
    ['with a name and password', 'host: a:b@c'],
    ['with a port that is none', 'host: a:b'],
    ['with an open bracket', 'host: [::1'],
  ]
  it.each(bad)('that is %s is 400', async (_, lines) => {
    const put = (text: string) => text.replace('host: x\r\n', lines && `${lines}\r\n`)
    for (const text of [rpc({ host: 'x' }), operation({ host: 'x' })]) {
      const [answer] = await ask(put(text))
      expect(answer?.status).toBe(400)
      expect(answer?.body).toContain('MALFORMED_REQUEST')
      expect(answer?.headers.date).toBeDefined()
    }
    const [socket] = await ask(put(headOf(`GET ${socketPath} HTTP/1.1`, handshake)))
    expect([socket?.status, socket?.headers.date]).toEqual([400, expect.any(String)])
  })
})

describe('a target of the absolute form', () => {
  it('is served as the same one without its host', async () => {
    const targets = ['http://example.com', 'https://x:1', 'HTTP://[::1]:4000']
    for (const origin of targets) {
      const [call] = await ask(rpc({ host: 'x' }, origin + rpcPath))
      expect([call?.status, JSON.parse(call!.body).result]).toEqual([200, '1'])
      // What is signed is the path, as behind a proxy.
      const [answer] = await ask(operation({ host: 'x' }, origin + operationPath))
      expect(answer?.status).toBe(200)
      const [opened] = await ask(headOf(`GET ${origin}${socketPath} HTTP/1.1`, handshake))
      expect(opened?.status).toBe(101)
    }
    const [root] = await ask('GET http://x HTTP/1.1\r\nhost: x\r\n\r\n')
    const [same] = await ask('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    expect([root?.status, root?.body]).toEqual([same?.status, same?.body])
  })

  it.each(['http://a:b@x/', 'http:///', 'ftp://x/', 'http://a b/'])(
    'that is malformed (%s) is refused',
    async (target) => {
      const [answer] = await ask(`POST ${target} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`)
      expect(answer?.status).toBe(400)
    },
  )
})

describe('a body that is too large', () => {
  const paths = [rpcPath, operationPath]

  it.each(paths)('is refused in a way that clients can read: %s', async (path) => {
    for (const size of [100_001, 3_000_000, 20_000_000]) {
      const body = Buffer.alloc(size, 'x')
      const answer = await fetch(base_url + path, { method: 'POST', headers: json, body })
      expect(answer.status).toBe(413)
      expect(await answer.text()).toContain('BODY_TOO_LARGE')
    }
  })

  it.each(paths)('of unknown length is, too: %s', async (path) => {
    const status = await new Promise((resolve, reject) => {
      const request = httpRequest(base_url + path, { method: 'POST', headers: json })
      request.on('response', (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      request.on('error', reject)
      for (let part = 0; part < 30; part++) request.write(Buffer.alloc(100_000, 'x'))
      request.end()
    })
    expect(status).toBe(413)
  })

  it.each(paths)('leaves the connection for further requests: %s', async (path) => {
    const large = headOf(`POST ${path} HTTP/1.1`, { host: 'x', ...json, 'content-length': 200_000 })
    const answers = await ask(large + 'x'.repeat(200_000) + rpc({ host: 'x' }), 2)
    expect(answers.map(({ status }) => status)).toEqual([413, 200])
  })

  it.each(paths)('is not asked for: %s', async (path) => {
    const expects = { host: 'x', ...json, expect: '100-continue' }
    const [large] = await ask(
      headOf(`POST ${path} HTTP/1.1`, { ...expects, 'content-length': 200_000 }),
    )
    expect([large?.status, large?.headers.connection]).toEqual([413, 'close'])
  })
})

it('a body is asked for only when it is wanted', async () => {
  const expects = { host: 'x', ...json, expect: '100-continue', 'content-length': rpcBody.length }
  const connection = await openRaw(base_url)
  connection.write(headOf(`POST ${rpcPath} HTTP/1.1`, expects))
  expect((await connection.answers(1))[0]?.status).toBe(100)
  connection.write(rpcBody)
  expect((await connection.answers(2))[1]?.status).toBe(200)
  connection.destroy()
  const unwanted = headOf('POST /c/mainnet/v1/unknown HTTP/1.1', expects)
  expect((await ask(unwanted))[0]?.status).toBe(401)
})

describe('the address of a WebSocket', () => {
  it.each(['HTTP/1.1', 'HTTP/1.0'])('answers a plain GET of %s with 426', async (version) => {
    const [answer] = await ask(`GET ${socketPath} ${version}\r\nhost: x\r\n\r\n`)
    expect(answer).toMatchObject({
      status: 426,
      headers: {
        upgrade: 'websocket',
        connection: expect.stringContaining('upgrade'),
        date: expect.any(String),
      },
    })
    expect(answer?.body).toContain('UPGRADE_REQUIRED')
  })

  it('does not take a handshake of HTTP/1.0', async () => {
    const [answer] = await ask(headOf(`GET ${socketPath} HTTP/1.0`, handshake))
    expect(answer?.status).toBe(426)
  })

  it('takes no other method', async () => {
    const [answer] = await ask(rpc({ host: 'x' }, socketPath))
    expect([answer?.status, answer?.headers.allow]).toEqual([405, 'GET'])
  })

  it.each([
    [{ 'sec-websocket-version': '8' }, 426],
    [{ 'sec-websocket-version': '' }, 426],
    [{ 'sec-websocket-key': 'short' }, 400],
    [{ 'sec-websocket-key': '' }, 400],
    [{ 'sec-websocket-protocol': ',,' }, 400],
  ])('says what is wrong with a handshake: %j', async (change, status) => {
    const [answer] = await ask(headOf(`GET ${socketPath} HTTP/1.1`, { ...handshake, ...change }))
    expect(answer?.status).toBe(status)
    expect(answer?.headers).toMatchObject({
      'content-type': 'application/json',
      date: expect.any(String),
    })
    expect(answer?.headers['sec-websocket-version']).toBe(status === 426 ? '13' : undefined)
    expect(JSON.parse(answer!.body).error.data.source).toBe('gateway')
  })
})

it('every answer has a date and nosniff, and one of 401 says how to authenticate', async () => {
  const answers = [
    (await ask(rpc({ host: 'x' })))[0],
    (await ask(rpc({ host: 'x' }, '/c/mainnet/v1/unknown')))[0],
    (await ask(operation({ host: 'x', 'x-api-key': 'k' }).replace(member.api_key, 'unknown')))[0],
    (await ask('nonsense\r\n\r\n'))[0],
    (await ask(headOf(`GET ${socketPath}x HTTP/1.1`, handshake)))[0],
    (await ask(headOf(`GET ${socketPath} HTTP/1.1`, handshake)))[0],
  ]
  expect(answers.map((answer) => answer?.status)).toEqual([200, 401, 401, 400, 401, 101])
  for (const answer of answers) {
    expect(Math.abs(Date.parse(answer?.headers.date ?? '') - Date.now())).toBeLessThan(10_000)
    expect(answer?.headers['www-authenticate'] !== undefined).toBe(answer?.status === 401)
    if (answer?.status !== 101) expect(answer?.headers['x-content-type-options']).toBe('nosniff')
  }
})

describe('an answer of 3 MB', () => {
  const large = `"0x${'0123456789abcdef'.repeat(200_000)}"`
  const call = '{"jsonrpc":"2.0","id":"é","method":"eth_call","params":[{"to":null},"latest"]}'
  const bytes = Buffer.byteLength(call)
  const asked = { host: 'x', ...json }
  const whole = headOf(`POST ${rpcPath} HTTP/1.1`, { ...asked, 'content-length': bytes }) + call
  const chunked = `${headOf(`POST ${rpcPath} HTTP/1.1`, { ...asked, 'transfer-encoding': 'chunked' })}${bytes.toString(16)}\r\n${call}\r\n0\r\n\r\n`

  it.each([
    ['on the bare socket', whole],
    ["by Node's server", chunked],
  ])('comes whole %s, before the answer to the next request', async (_, request) => {
    node.answer = ({ method }) => (method === 'eth_call' ? { result: large } : undefined)
    const answers = await ask(request + rpc({ host: 'x' }) + request, 3)
    const expected = Buffer.from(`{"jsonrpc":"2.0","id":"é","result":${large}}`).toString('latin1')
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    for (const { body } of [answers[0]!, answers[2]!]) expect(body === expected).toBe(true)
    expect(JSON.parse(answers[1]!.body)).toMatchObject({ id: 1, result: '1' })
  })
})
