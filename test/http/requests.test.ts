import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'
import { openRaw } from '../helpers/raw-http.ts'
import { authHeaders } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { operations } from './sample-requests.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const service = await startTestApp()
const tenant = await service.createTenant()
const path = '/v1/admin/GetOrganizationByDomain'
const body = JSON.stringify({ domain: tenant.domain })

const signed = (target = path, payload: string | Uint8Array = body) => ({
  'content-type': 'application/json',
  ...authHeaders(tenant.member, { path: target, body: payload }),
})

const head = (headers: Record<string, string | number>, line = `POST ${path} HTTP/1.1`) =>
  `${line}\r\nhost: test\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

const whole = (extra: Record<string, string> = {}) =>
  head({ ...signed(), 'content-length': body.length, ...extra }) + body

const reasonOf = (text: string) => JSON.parse(text).reason

describe('an address', () => {
  it.each([
    '/v1',
    '/v1/',
    '/v1/admin',
    '/v1/admin/',
    '/v1/admin/Nothing',
    '/v1/admin/getratelimit',
    '/v1/ADMIN/GetRateLimit',
    '/v1/admin/GetRateLimit/',
    '/v1/admin/GetRateLimit/x',
    '/v1//GetRateLimit',
    '/v1/admin//GetRateLimit',
    '/v1/x/GetRateLimit',
    '/v1/p/GetAddress',
    '/v1/c/ImportAsset',
    '/v1/t/CreateTransaction',
    '/v1/admin/__proto__',
    '/v1/__proto__/toString',
    '/v1/admin/GetRateLimit%00',
    '/v1/admin%2FGetRateLimit',
    '/v2/admin/GetRateLimit',
    '/health/',
    '/Health',
    '/docs/errors/NOPE',
    '/docs/errors/__proto__',
    '/docs/assets/../../../package.json',
    '/docs/assets/__proto__',
    '/docs/assets/',
    '/favicon.ico',
    '//health',
  ])('that does not exist (%s) answers 404', async (target) => {
    // What lies below the pages is asked for its method first.
    const methods = target.startsWith('/docs/') ? ['GET'] : ['GET', 'POST', 'PUT', 'DELETE']
    for (const method of methods) {
      const { status, headers, json } = await service.send(target, { method })
      expect([method, status, json.reason]).toEqual([method, 404, 'ROUTE_NOT_FOUND'])
      expect(headers['content-type']).toBe('application/problem+json')
    }
  })

  it.each(operations)('of %s takes POST only', async (name) => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const { status, headers, json } = await service.send(`/v1/${name}`, { method })
      expect([method, status, headers.allow]).toEqual([method, 405, 'POST'])
      expect(json.reason).toBe('METHOD_NOT_ALLOWED')
    }
  })

  it.each([
    '/',
    '/health',
    '/ready',
    '/ready/gateway',
    '/status',
    '/openapi.json',
    '/docs',
    '/docs/errors',
  ])('%s takes GET and HEAD only', async (target) => {
    const get = await service.send(target, { method: 'GET' })
    const headed = await service.send(target, { method: 'HEAD' })
    expect(headed.status).toBe(get.status)
    expect(headed.text).toBe('')
    expect(headed.headers['content-type']).toBe(get.headers['content-type'])
    for (const method of ['POST', 'DELETE', 'OPTIONS']) {
      const { status, headers } = await service.send(target, { method })
      expect([method, status, headers.allow]).toEqual([method, 405, 'GET, HEAD'])
    }
  })

  it('may carry a query, which the signature then covers', async () => {
    const target = `${path}?trace=1&x=%20`
    const { status } = await service.send(target, { body, headers: signed(target) })
    expect(status).toBe(200)
  })
})

describe('a request id', () => {
  it.each(['a', 'A-Z_0.9:x', 'x'.repeat(100), '01900000-0000-7000-8000-000000000000'])(
    'of the caller that is well formed (%s) is kept',
    async (id) => {
      const headers = { ...signed(), 'x-request-id': id }
      const good = await service.send(path, { body, headers })
      expect([good.status, good.headers['x-request-id']]).toEqual([200, id])
      const bad = await service.send('/nothing', { headers: { 'x-request-id': id } })
      expect([bad.headers['x-request-id'], bad.json.request_id]).toEqual([id, id])
    },
  )

  it.each(['', ' ', 'a b', 'x'.repeat(101), '<script>', 'ä', '"', 'a,b', ['a', 'b']])(
    'of the caller that is not (%j) is replaced',
    async (id) => {
      const { headers, json } = await service.send('/nothing', { headers: { 'x-request-id': id } })
      expect(headers['x-request-id']).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}$/)
      expect(json.request_id).toBe(headers['x-request-id'])
    },
  )

  it('is a new one for every request', async () => {
    const ids = await Promise.all(
      Array.from({ length: 50 }, async () => (await service.send('/x')).headers['x-request-id']),
    )
    expect(new Set(ids).size).toBe(50)
  })
})

describe('a body', () => {
  it('that is empty counts as {}', async () => {
    const target = '/v1/admin/ListRateLimits'
    const { status, json } = await service.send(target, { headers: signed(target, '') })
    expect([status, json.errors]).toMatchObject([400, [{ field: 'organization_id' }]])
    const { 'content-type': _, ...bare } = signed(target, '')
    expect((await service.send(target, { headers: bare })).json.reason).toBe('INVALID_REQUEST')
  })

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'Application/JSON ; charset="utf-8"',
  ])('has the content type %s', async (type) => {
    const headers = { ...signed(), 'content-type': type }
    expect((await service.send(path, { body, headers })).status).toBe(200)
  })

  it('may come in chunks of any size', async () => {
    const connection = await openRaw(service.base_url)
    connection.write(head({ ...signed(), 'transfer-encoding': 'chunked' }))
    for (const char of body) connection.write(`1;ext=1\r\n${char}\r\n`)
    connection.write('0\r\ntrailer: x\r\n\r\n')
    expect((await connection.answers(1))[0]?.status).toBe(200)
    connection.destroy()
  })

  it('is waited for with 100 Continue where the caller expects it', async () => {
    const connection = await openRaw(service.base_url)
    connection.write(head({ ...signed(), 'content-length': body.length, expect: '100-continue' }))
    expect((await connection.answers(1))[0]?.status).toBe(100)
    connection.write(body)
    expect((await connection.answers(2))[1]?.status).toBe(200)
    connection.destroy()
  })

  it('of exactly the limit is taken and one byte more is not', async () => {
    const target = '/v1/admin/ListRateLimits'
    const padded = (size: number) => `{"organization_id":"x"${' '.repeat(size - 23)}}`
    const ask = (payload: string) =>
      service.send(target, { body: payload, headers: signed(target, payload) })
    expect(padded(1_048_576)).toHaveLength(1_048_576)
    expect((await ask(padded(1_048_576))).status).toBe(404)
    const over = await ask(padded(1_048_577))
    expect([over.status, over.json.reason]).toEqual([413, 'BODY_TOO_LARGE'])
  })

  it('that is announced as too large is refused before it is sent', async () => {
    const connection = await openRaw(service.base_url)
    connection.write(head({ ...signed(), 'content-length': 10_000_000_000 }))
    const [answer] = await connection.answers(1)
    expect(answer?.status).toBe(413)
    expect(answer?.headers.connection).toBe('close')
    await connection.closed
  })

  it('of 64 MiB in chunks is refused without being kept in memory', async () => {
    const connection = await openRaw(service.base_url)
    connection.write(head({ ...signed(), 'transfer-encoding': 'chunked' }))
    const chunk = Buffer.concat([
      Buffer.from('10000\r\n'),
      Buffer.alloc(65_536, 0x20),
      Buffer.from('\r\n'),
    ])
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    for (let sent = 0; sent < 1_024 && !connection.socket.destroyed; sent++) {
      if (!connection.socket.write(chunk))
        await Promise.race([drained(connection.socket), connection.closed])
      // What was read and dropped is not what is kept.
      if (sent % 64 > 0) continue
      collectGarbage()
      most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }
    const [answer] = await connection.answers(1)
    expect([answer?.status, reasonOf(answer!.body)]).toEqual([413, 'BODY_TOO_LARGE'])
    expect(most).toBeLessThan(16 * 1024 * 1024)
    connection.destroy()
  })

  it('that is cut off leaves its refusal to a client that reads late', async () => {
    const connection = await openRaw(service.base_url)
    const { socket } = connection
    socket.pause()
    connection.write(head({ ...signed(), 'transfer-encoding': 'chunked' }))
    const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`
    let isTaken = true
    for (let sent = 0; sent < 1_024 && isTaken; sent++)
      if (!socket.write(chunk))
        isTaken = await Promise.race([drained(socket).then(() => true), delay(300, false)])
    expect(isTaken).toBe(false)
    socket.resume()
    const [answer] = await connection.answers(1)
    expect(answer?.status).toBe(413)
    await connection.closed
  })
})

describe('a connection', () => {
  it('serves requests that are sent one behind the other, in their order', async () => {
    const connection = await openRaw(service.base_url)
    const ids = Array.from({ length: 20 }, (_, at) => `pipe-${at}`)
    connection.write(ids.map((id) => whole({ 'x-request-id': id })).join(''))
    const answers = await connection.answers(20)
    expect(answers.map(({ headers }) => headers['x-request-id'])).toEqual(ids)
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    connection.destroy()
  })

  it('that breaks in the middle of a body leaves no error behind', async () => {
    const begun = service.log.lines().length
    const connections = await Promise.all(
      Array.from({ length: 20 }, () => openRaw(service.base_url)),
    )
    for (const connection of connections) {
      connection.write(head({ ...signed(), 'content-length': 1_000 }) + body)
      connection.socket.resetAndDestroy()
    }
    await Promise.all(connections.map(({ closed }) => closed))
    await waitFor('the service has seen them go', async () => {
      const { text } = await service.admin('/metrics')
      return /operation="GetOrganizationByDomain",status="499"/.test(text)
    })
    const loud = service.log
      .lines()
      .slice(begun)
      // Each has its line in the access log.
      .filter(({ level, msg }) => level !== 'debug' && msg !== 'request finished')
    expect(loud).toEqual([])
  })

  it('is kept open after a refusal', async () => {
    const connection = await openRaw(service.base_url)
    connection.write(head({ 'content-length': 0 }))
    connection.write(whole())
    const answers = await connection.answers(2)
    expect(answers.map(({ status }) => status)).toEqual([401, 200])
    connection.destroy()
  })

  it('of HTTP/1.0 is answered and closed', async () => {
    const connection = await openRaw(service.base_url)
    connection.write('GET /health HTTP/1.0\r\n\r\n')
    expect((await connection.answers(1))[0]?.status).toBe(200)
    await connection.closed
  })
})

function drained(socket: { once(event: 'drain', done: () => void): void }): Promise<void> {
  return new Promise((resolve) => socket.once('drain', resolve))
}
