import { describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'
import { openRaw, type RawAnswer } from '../helpers/raw-http.ts'
import { authHeaders } from '../helpers/signer.ts'

const service = await startTestApp()
const tenant = await service.createTenant()
const path = '/v1/admin/CreateOrganization'
const secondPath = '/v1/admin/ListOrganizations'
let domains = 0

/** A signed request that leaves a trace when it is carried out. */
const smuggled = () => {
  const body = JSON.stringify({ name: 'smuggled', domain: `smuggled-${domains++}` })
  const headers = authHeaders(tenant.admin, { path, body })
  return [
    `POST ${path} HTTP/1.1`,
    'host: test',
    'content-type: application/json',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

const signedHead = (body = '') =>
  [
    `POST ${secondPath} HTTP/1.1`,
    'host: test',
    'content-type: application/json',
    ...Object.entries(authHeaders(tenant.admin, { path: secondPath, body })).map(
      ([name, value]) => `${name}: ${value}`,
    ),
  ].join('\r\n')

const send = async (text: string): Promise<RawAnswer[]> => {
  const connection = await openRaw(service.base_url)
  connection.write(text)
  const answers = await connection.answers(1)
  if (answers[0]?.headers.connection === 'close') await connection.closed
  connection.destroy()
  return answers
}

const expectRefused = (answers: RawAnswer[], status = 400, reason = 'MALFORMED_REQUEST') => {
  expect(answers).toHaveLength(1)
  const [answer] = answers
  expect(answer?.status).toBe(status)
  expect(answer?.headers['content-type']).toBe('application/problem+json')
  expect(answer?.headers.connection).toBe('close')
  const problem = JSON.parse(answer!.body)
  expect([problem.status, problem.reason]).toEqual([status, reason])
  expect(problem.request_id).toBe(answer?.headers['x-request-id'])
}

const organizations = async () => {
  const { rows } = await service.database.pool.query<{ count: number }>(
    `select count(*)::int from organization where name = 'smuggled'`,
  )
  return rows[0]?.count
}

describe('a request whose end two readers could see at different places', () => {
  const pairs: Record<string, (hidden: string) => string> = {
    'both lengths, chunks first': (hidden) =>
      `${signedHead()}\r\ntransfer-encoding: chunked\r\ncontent-length: ${5 + hidden.length}\r\n\r\n0\r\n\r\n${hidden}`,
    'both lengths, length first': (hidden) =>
      `${signedHead()}\r\ncontent-length: ${5 + hidden.length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    'two different lengths': (hidden) =>
      `${signedHead()}\r\ncontent-length: 0\r\ncontent-length: ${hidden.length}\r\n\r\n${hidden}`,
    'a length with a sign': (hidden) => `${signedHead()}\r\ncontent-length: +0\r\n\r\n${hidden}`,
    'a negative length': (hidden) => `${signedHead()}\r\ncontent-length: -1\r\n\r\n${hidden}`,
    'a length in hex': (hidden) => `${signedHead()}\r\ncontent-length: 0x0\r\n\r\n${hidden}`,
    'a list of lengths': (hidden) => `${signedHead()}\r\ncontent-length: 0, 0\r\n\r\n${hidden}`,
    'a length beyond all numbers': (hidden) =>
      `${signedHead()}\r\ncontent-length: 99999999999999999999\r\n\r\n${hidden}`,
    'an unknown transfer encoding': (hidden) =>
      `${signedHead()}\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`,
    'a transfer encoding after chunked': (hidden) =>
      `${signedHead()}\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${hidden}`,
    'a header folded over two lines': (hidden) =>
      `${signedHead()}\r\ntransfer-encoding:\r\n chunked\r\ncontent-length: 0\r\n\r\n${hidden}`,
    'a space before the colon': (hidden) =>
      `${signedHead()}\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n${hidden}`,
    'a bare carriage return in a header': (hidden) =>
      `${signedHead()}\r\nx-a: b\rtransfer-encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    'a bare line feed between headers': (hidden) =>
      `${signedHead()}\r\nx-a: b\ncontent-length: 0\n\r\n${hidden}`,
    'a NUL in a header': (hidden) => `${signedHead()}\r\nx-a: \0\r\n\r\n${hidden}`,
    'a chunk size that is no number': (hidden) =>
      `${signedHead()}\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n${hidden}`,
    'a chunk longer than its size': (hidden) =>
      `${signedHead()}\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n${hidden}`,
    'a chunk size beyond all numbers': (hidden) =>
      `${signedHead()}\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n${hidden}`,
  }

  it.each(Object.keys(pairs))(
    'is refused and nothing behind it is carried out: %s',
    async (name) => {
      expectRefused(await send(pairs[name]!(smuggled())))
      expect(await organizations()).toBe(0)
    },
  )

  it('would have been carried out, were it sent alone', async () => {
    const [answer] = await send(smuggled())
    expect(answer?.status).toBe(200)
    expect(await organizations()).toBe(1)
  })
})

describe('a request that is not HTTP/1.1', () => {
  it.each([
    ['rubbish', 'hello\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', 'BREW /health HTTP/1.1\r\nhost: test\r\n\r\n'],
    ['a method in lower case', 'get /health HTTP/1.1\r\nhost: test\r\n\r\n'],
    ['a space in the target', 'GET /he alth HTTP/1.1\r\nhost: test\r\n\r\n'],
    ['no host', 'GET /health HTTP/1.1\r\n\r\n'],
  ])('is refused with a problem body: %s', async (_, text) => {
    expectRefused(await send(text))
  })

  it('is refused with 431 when its headers are too large', async () => {
    const large = `GET /health HTTP/1.1\r\nhost: test\r\nx-a: ${'a'.repeat(20_000)}\r\n\r\n`
    expectRefused(await send(large), 431, 'HEADERS_TOO_LARGE')
    const many = `GET /health HTTP/1.1\r\nhost: test\r\n${'a: b\r\n'.repeat(5_000)}\r\n`
    expectRefused(await send(many), 431, 'HEADERS_TOO_LARGE')
    const target = `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: test\r\n\r\n`
    expectRefused(await send(target), 431, 'HEADERS_TOO_LARGE')
  })

  it('does not steal the answer of the request before it', async () => {
    const connection = await openRaw(service.base_url)
    connection.write(`${signedHead()}\r\ncontent-length: 0\r\n\r\nrubbish\r\n\r\n`)
    await connection.closed
    const [first, second] = await connection.answers(2)
    expect([first?.status, second?.status]).toEqual([200, 400])
    expect(JSON.parse(first!.body).organizations).not.toEqual([])
  })

  it('leaves the service in good health', async () => {
    expect((await service.send('/ready', { method: 'GET' })).status).toBe(200)
    expect(service.log.lines().filter(({ level }) => level === 'error')).toEqual([])
  })
})
