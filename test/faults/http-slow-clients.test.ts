import { setInterval } from 'node:timers'
import { describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'
import { openRaw, type RawConnection } from '../helpers/raw-http.ts'

const config = { server: { header_timeout_seconds: 1, request_timeout_seconds: 2 } }
const service = await startTestApp({ config })
const tenant = await service.createTenant()
const { organization_id } = tenant

const trickle = (connections: RawConnection[], text: string) => {
  const timer = setInterval(() => {
    for (const connection of connections) if (connection.socket.writable) connection.write(text)
  }, 100)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

const open = (count: number) =>
  Promise.all(Array.from({ length: count }, () => openRaw(service.base_url)))

const timed = async (work: () => Promise<unknown>) => {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

describe('slow clients', () => {
  it('are cut off while they trickle headers, and others are served meanwhile', async () => {
    const slow = await open(300)
    for (const connection of slow)
      connection.write('POST /v1/q/GetBlock HTTP/1.1\r\nhost: test\r\n')
    using _ = trickle(slow, 'x-a: b\r\n')
    let all = false
    const closed = Promise.all(slow.map((connection) => connection.closed)).then(() => {
      all = true
    })
    const times: number[] = []
    while (!all && times.length < 5_000)
      times.push(
        await timed(async () => {
          const { status } = await service.call(tenant.member, 'admin/ListRateLimits', {
            organization_id,
          })
          expect(status).toBe(200)
        }),
      )
    await closed
    expect(times.length).toBeGreaterThan(5)
    expect(times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)]).toBeLessThan(2_000)
    for (const connection of slow) expect(connection.received()).toMatch(/^(HTTP\/1\.1 408|$)/)
    expect(
      slow.filter((connection) => connection.received().includes('REQUEST_TIMEOUT')).length,
    ).toBe(300)
  })

  it('are cut off while they trickle a body', async () => {
    const slow = await open(50)
    for (const connection of slow)
      connection.write(
        'POST /v1/q/GetBlock HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{',
      )
    using _ = trickle(slow, ' ')
    const begun = Date.now()
    await Promise.all(slow.map((connection) => connection.closed))
    expect(Date.now() - begun).toBeLessThan(20_000)
    for (const connection of slow) expect(connection.received()).toMatch(/^(HTTP\/1\.1 408|$)/)
    expect((await service.send('/health', { method: 'GET' })).status).toBe(200)
  })

  it('are cut off while they trickle chunks', async () => {
    const slow = await open(20)
    for (const connection of slow)
      connection.write(
        'POST /v1/q/GetBlock HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n',
      )
    using _ = trickle(slow, '1\r\n \r\n')
    await Promise.all(slow.map((connection) => connection.closed))
    for (const connection of slow) expect(connection.received()).toMatch(/^(HTTP\/1\.1 408|$)/)
  })

  it('that send nothing are cut off', async () => {
    const silent = await open(20)
    await Promise.all(silent.map((connection) => connection.closed))
  })

  it('cannot hold on to a connection that the service has closed', async () => {
    const stubborn = await Promise.all(
      Array.from({ length: 10 }, () => openRaw(service.base_url, true)),
    )
    for (const connection of stubborn)
      connection.write('POST /v1/q/GetBlock HTTP/1.1\r\nhost: test\r\n')
    using _ = trickle(stubborn, 'x-a: b\r\n')
    const begun = Date.now()
    await Promise.all(stubborn.map((connection) => connection.closed))
    expect(Date.now() - begun).toBeLessThan(20_000)
  })

  it('that do not read their answers delay no other client', async () => {
    const deaf = await open(5)
    for (const connection of deaf) {
      connection.socket.pause()
      connection.write('GET /openapi.json HTTP/1.1\r\nhost: test\r\n\r\n'.repeat(100))
    }
    const { status } = await service.call(tenant.member, 'admin/ListRateLimits', {
      organization_id,
    })
    expect(status).toBe(200)
    for (const connection of deaf) connection.destroy()
  })
})
