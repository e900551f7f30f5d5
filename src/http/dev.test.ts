import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { OperationError } from '../contract/errors/errors.ts'
import type { Authenticator } from '../domain/access/authenticate.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import { type DevTools, devRoutes } from './dev.ts'
import { startServer } from './server.ts'
import { createSignIn } from './sign-in.ts'

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

async function start(role: 'ROLE_ADMIN' | 'ROLE_MEMBER' | undefined = undefined) {
  const done: unknown[] = []
  const tools: DevTools = {
    isRunning: (chain) => chain === 'c' || chain === 's',
    transactionField: (chain) => (chain === 's' ? 'transaction_digest' : 'transaction_hash'),
    coin: () => 1_000n,
    checkAddress: (_, address) => (address === 'good' ? undefined : 'Is no address.'),
    fund: async (...funding) => {
      done.push(funding)
      return 'the-hash'
    },
    reorganize: async (depth) => {
      done.push(depth)
    },
    nodes: () => [{ chain: 'c', is_running: true, can_mine: true }],
    mine: async (...mined) => {
      done.push(['mine', ...mined])
    },
    stopNode: async (chain) => {
      done.push(['stop', chain])
    },
    startNode: async (chain) => {
      done.push(['start', chain])
    },
    receive: async (_, headers) => headers['webhook-id'] === 'genuine',
  }
  const authenticator: Authenticator = {
    authenticate: async () => {
      if (!role) throw new OperationError('UNAUTHENTICATED')
      return { credential_id: '', organization_id: '', role }
    },
    redeem: async () => undefined,
    takeUsed: () => [],
    forget() {},
  }
  const signIn = createSignIn({ keys: 'secret' }, { ids: systemIds, clock: systemClock })
  const routes = devRoutes(tools, authenticator, ['portolan.example.org'], signIn)
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    routes,
    log,
    onFinished: () => {},
  })
  onTestFinished(server.stop)
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const answer = await fetch(`http://127.0.0.1:${server.address.port}/dev/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close', ...headers },
      body: JSON.stringify(body),
    })
    const text = await answer.text()
    return { status: answer.status, body: text ? JSON.parse(text) : undefined }
  }
  /** `fetch` does not let a caller choose the host. */
  const postAs = async (
    headers: Record<string, string>,
    path = 'faucet',
    fields: object = { chain: 'c', address: 'good' },
  ) => {
    const body = JSON.stringify(fields)
    const asked = request({
      port: server.address.port,
      path: `/dev/v1/${path}`,
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close', ...headers },
    }).end(body)
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    answer.resume()
    return answer.statusCode
  }
  return { post, postAs, done, code: signIn.code }
}

test('blocks are mined, and nodes are stopped and started', async () => {
  const { post, done } = await start()
  expect((await post('nodes', {})).body.nodes).toEqual([
    { chain: 'c', is_running: true, can_mine: true },
  ])
  expect(await post('mine', { chain: 'c', blocks: 3 })).toEqual({
    status: 200,
    body: { blocks: 3 },
  })
  expect((await post('node', { chain: 'c', is_running: false })).status).toBe(200)
  // It runs already.
  expect((await post('node', { chain: 'c', is_running: true })).status).toBe(200)
  for (const [path, body] of [
    ['mine', { chain: 'c', blocks: 0 }],
    ['mine', { chain: 'c', blocks: 1_001 }],
    ['mine', { chain: 'x' }],
    ['node', { chain: 'c' }],
    ['node', { chain: 'c', is_running: 'no' }],
  ] as const)
    expect([path, body, (await post(path, body)).status]).toEqual([path, body, 400])
  expect((await post('node', { chain: 't', is_running: false })).status).toBe(503)
  expect(done).toEqual([
    ['mine', 'c', 3],
    ['stop', 'c'],
  ])
})

test('the link of the banner signs in once, from a page of this service on this machine', async () => {
  const { post, postAs, code } = await start()
  expect(await post('sign-in', { code: `${code}x` })).toMatchObject({ status: 401 })
  expect(await post('sign-in', {})).toMatchObject({ status: 401 })
  for (const headers of [
    { origin: 'http://elsewhere.example' },
    { host: 'elsewhere.example' },
    { 'content-type': 'text/plain' },
  ])
    expect(await postAs(headers, 'sign-in', { code })).toBeGreaterThanOrEqual(400)
  expect(await postAs({ 'x-forwarded-for': '192.0.2.1' }, 'sign-in', { code })).toBe(401)
  expect(await post('sign-in', { code })).toEqual({ status: 200, body: { keys: 'secret' } })
  const again = await post('sign-in', { code })
  expect([again.status, again.body.reason]).toEqual([401, 'INVALID_SIGN_IN_CODE'])
})

test('the link of the banner expires', () => {
  let now = 1_000
  const clock = { ...systemClock, now: () => now }
  const first = createSignIn({}, { ids: systemIds, clock })
  now += 15 * 60_000 + 1
  expect(first.redeem(first.code)).toBeUndefined()
})

test('a page of another site that resolves its name to this machine is refused', async () => {
  const { postAs, done } = await start('ROLE_ADMIN')
  expect(await postAs({ host: 'evil.example' })).toBe(403)
  expect(await postAs({ host: 'evil.example:4000', origin: 'http://evil.example:4000' })).toBe(403)
  expect(await postAs({ host: 'localhost', origin: 'http://evil.example' })).toBe(403)
  expect(await postAs({ host: 'localhost', origin: 'null' })).toBe(403)
  expect(done).toEqual([])
  expect(await postAs({ host: 'localhost:4000', origin: 'http://localhost:3000' })).toBe(200)
  expect(await postAs({ host: 'portolan.example.org' })).toBe(200)
})

test('the faucet sends what is asked for, or a coin', async () => {
  const { post, done } = await start()
  expect(await post('faucet', { chain: 'c', address: 'good', amount: '5' })).toEqual({
    status: 200,
    body: { transaction_hash: 'the-hash', amount: '5' },
  })
  expect(await post('faucet', { chain: 'S', address: 'good' })).toEqual({
    status: 200,
    body: { transaction_hash: 'the-hash', transaction_digest: 'the-hash', amount: '1000' },
  })
  expect((await post('faucet', { chain: 'c', address: 'good', amount: 7 })).status).toBe(200)
  expect(done).toEqual([
    ['c', 'good', 5n],
    ['s', 'good', 1_000n],
    ['c', 'good', 7n],
  ])
})

test.each([
  [{ address: 'good' }, 400, 'chain'],
  [{ chain: 'x', address: 'good' }, 400, 'chain'],
  [{ chain: 'c' }, 400, 'address'],
  [{ chain: 'c', address: 'bad' }, 400, 'address'],
  [{ chain: 'c', address: 'good', amount: '0' }, 400, 'amount'],
  [{ chain: 'c', address: 'good', amount: '-1' }, 400, 'amount'],
  [{ chain: 'c', address: 'good', amount: 1.5 }, 400, 'amount'],
  [{ chain: 'c', address: 'good', amount: null }, 400, 'amount'],
  [{ chain: 't', address: 'good' }, 503, undefined],
  ['text', 400, undefined],
])('the faucet refuses %j', async (body, status, field) => {
  const { post, done } = await start()
  const answer = await post('faucet', body)
  expect(answer.status).toBe(status)
  if (field) expect(answer.body.errors[0].field).toBe(field)
  expect(done).toEqual([])
})

test('only chain c goes back, and not for ever', async () => {
  const { post, done } = await start()
  expect((await post('reorg', { chain: 'c', depth: 3 })).status).toBe(200)
  expect((await post('reorg', { chain: 's', depth: 3 })).status).toBe(400)
  for (const depth of [0, 65, 1.5, '2'])
    expect((await post('reorg', { depth })).status, `${depth}`).toBe(400)
  expect(done).toEqual([3])
})

test('remote callers need the credential of an administrator', async () => {
  const elsewhere = { 'x-forwarded-for': '192.0.2.1' }
  const body = { chain: 'c', address: 'good' }
  expect((await (await start()).post('faucet', body, elsewhere)).status).toBe(401)
  expect((await (await start('ROLE_MEMBER')).post('faucet', body, elsewhere)).status).toBe(403)
  expect((await (await start('ROLE_ADMIN')).post('faucet', body, elsewhere)).status).toBe(200)
})

test('a page of another origin cannot send what it takes', async () => {
  const { post } = await start()
  const body = { chain: 'c', address: 'good' }
  expect((await post('faucet', body, { 'content-type': 'text/plain' })).status).toBe(415)
})

test('the sink says whether a delivery is genuine', async () => {
  const { post } = await start()
  expect((await post('sink/c', {}, { 'webhook-id': 'genuine' })).status).toBe(204)
  expect((await post('sink/c', {})).status).toBe(401)
})
