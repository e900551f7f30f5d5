import { describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../helpers/app.ts'
import { openRaw } from '../helpers/raw-http.ts'
import { authHeaders } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'

const path = '/v1/admin/ListOrganizations'

/** A request whose headers and half of whose body are sent: it is under way. */
const begin = async (service: TestApp) => {
  const { admin } = await service.createTenant()
  const body = '{"page_size":1}'
  const headers = { ...authHeaders(admin, { path, body }), 'content-length': body.length }
  const connection = await openRaw(service.base_url)
  connection.write(
    `POST ${path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n${Object.entries(
      headers,
    )
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n${body.slice(0, 5)}`,
  )
  return { connection, finish: () => connection.write(body.slice(5)) }
}

const refusesConnections = async (service: TestApp) => {
  try {
    const { destroy } = await openRaw(service.base_url)
    destroy()
    return false
  } catch {
    return true
  }
}

const timed = async (work: Promise<unknown>) => {
  const begun = performance.now()
  await work
  return performance.now() - begun
}

describe('a service that gets a stop signal', () => {
  it('finishes the requests under way and closes their connections', async () => {
    const service = await startTestApp()
    const { connection, finish } = await begin(service)
    const stopping = timed(service.app.stop())
    await waitFor('new connections are refused', () => refusesConnections(service))
    finish()
    const [answer] = await connection.answers(1)
    expect(answer?.status).toBe(200)
    expect(answer?.headers.connection).toBe('close')
    expect(JSON.parse(answer!.body).organizations).toHaveLength(1)
    await connection.closed
    expect(await stopping).toBeLessThan(8_000)
  })

  it('refuses requests that arrive now with 503, Retry-After and close', async () => {
    const service = await startTestApp()
    const connection = await openRaw(service.base_url)
    connection.write('POST /v1/q/GetBlock HTTP/1.1\r\nhost: test\r\n')
    // Its first bytes have been read when a later connection is answered.
    expect((await service.send('/health', { method: 'GET' })).status).toBe(200)
    const stopping = timed(service.app.stop())
    await waitFor('new connections are refused', () => refusesConnections(service))
    connection.write('content-length: 0\r\n\r\n')
    const [answer] = await connection.answers(1)
    expect(answer?.status).toBe(503)
    expect(answer?.headers).toMatchObject({ connection: 'close', 'retry-after': '1' })
    expect(JSON.parse(answer!.body)).toMatchObject({ code: 'UNAVAILABLE', reason: 'SHUTTING_DOWN' })
    await connection.closed
    expect(await stopping).toBeLessThan(8_000)
  })

  it('serves on while it drains, each answer the last of its connection', async () => {
    const service = await startTestApp({ config: { server: { drain_seconds: 60 } } })
    const { admin } = await service.createTenant()
    const begun = new AbortController()
    const idle = await openRaw(service.base_url)
    const kept = await openRaw(service.base_url)
    kept.write('GET /health HTTP/1.1\r\nhost: test\r\n\r\n')
    expect((await kept.answers(1))[0]?.headers.connection).toBe('keep-alive')
    const draining = service.app.drain(begun.signal)
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: test\r\n\r\n`
    // A connection from before, one that has said nothing yet, and a new one.
    kept.write(get('/ready'))
    idle.write(get('/health'))
    const [, ready] = await kept.answers(2)
    expect([ready?.status, ready?.headers.connection]).toEqual([503, 'close'])
    expect(ready?.headers['retry-after']).toBe('1')
    expect(JSON.parse(ready!.body)).toEqual({
      status: 'not ready',
      reason: 'The service is stopping.',
    })
    const [health] = await idle.answers(1)
    expect([health?.status, health?.headers.connection]).toEqual([200, 'close'])
    await Promise.all([kept.closed, idle.closed])
    const answer = await service.call(admin, 'admin/ListOrganizations')
    expect([answer.status, answer.headers.connection]).toEqual([200, 'close'])
    const gateway = await openRaw(service.base_url)
    const body = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'
    const call = `POST /c/none/v1/key HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    // What has arrived behind a request is answered too.
    gateway.write(call + call)
    const answers = await gateway.answers(2)
    expect(answers.map(({ status, headers }) => [status, headers.connection])).toEqual([
      [404, 'keep-alive'],
      [404, 'close'],
    ])
    await gateway.closed
    begun.abort()
    await draining
    await service.app.stop()
    expect(await refusesConnections(service)).toBe(true)
  })

  it('closes idle connections at once', async () => {
    const service = await startTestApp()
    const idle = await openRaw(service.base_url)
    idle.write('GET /health HTTP/1.1\r\nhost: test\r\n\r\n')
    await idle.answers(1)
    expect(await timed(Promise.all([service.app.stop(), idle.closed]))).toBeLessThan(8_000)
  })

  it('does not wait for a stuck client beyond its bound', async () => {
    const service = await startTestApp({ config: { server: { shutdown_timeout_seconds: 1 } } })
    const { connection } = await begin(service)
    const silent = await openRaw(service.base_url)
    const took = await timed(service.app.stop())
    expect(took).toBeGreaterThan(900)
    expect(took).toBeLessThan(8_000)
    await Promise.all([connection.closed, silent.closed])
    const said = service.log.lines().map(({ msg }) => msg)
    expect(said).toContain('open requests aborted at the end of the shutdown time')
  })

  it('stops once, on any number of signals', async () => {
    const service = await startTestApp()
    await Promise.all([service.app.stop(), service.app.stop(), service.app.stop()])
    await service.app.stop()
    expect(await refusesConnections(service)).toBe(true)
  })

  it('loses no request of clients that continue calling', async () => {
    const service = await startTestApp()
    const { admin } = await service.createTenant()
    const outcomes: (number | string)[] = []
    let over = false
    const client = async () => {
      while (!over)
        await service.call(admin, 'admin/ListOrganizations').then(
          ({ status }) => outcomes.push(status),
          () => {
            over = true
          },
        )
    }
    const clients = Array.from({ length: 8 }, client)
    await waitFor('calls succeed', () => outcomes.length > 50)
    await service.app.stop()
    over = true
    await Promise.all(clients)
    expect(outcomes.filter((status) => status !== 200 && status !== 503)).toEqual([])
  })
})
