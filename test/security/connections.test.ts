import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'
import { openRaw } from '../helpers/raw-http.ts'
import { authHeaders, nextNonce } from '../helpers/signer.ts'

const bodyLimit = 1_048_576
const perAddress = 50
const attempts = 3_000
const service = await startTestApp({
  config: {
    server: {
      connections_per_address: perAddress,
      connections_limit: 120,
      // Those that are open stay open while the others are refused.
      header_timeout_seconds: 60,
      request_timeout_seconds: 60,
      body_bytes_per_address: 2 * bodyLimit,
      body_limit_bytes: bodyLimit,
    },
    // The largest body of all always fits.
    gateway: { body_limit_bytes: bodyLimit },
  },
})
const { member, organization_id } = await service.createTenant()
const { hostname, port } = new URL(service.base_url)

const sockets = new Set<Socket>()
afterAll(() => {
  for (const socket of sockets) socket.destroy()
})
type Kept = { socket: Socket; text: string; closed: boolean }
/** Opens a connection from another address of this machine. */
const open = async (localAddress: string): Promise<Kept> => {
  const socket = connect({ host: hostname, port: Number(port), localAddress })
  const kept: Kept = { socket, text: '', closed: false }
  sockets.add(socket)
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    kept.text += chunk
  })
  socket.on('close', () => {
    kept.closed = true
    sockets.delete(socket)
  })
  await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  return kept
}
const openMany = async (count: number, localAddress: string): Promise<Kept[]> => {
  const all: Kept[] = []
  for (let left = count; left > 0; left -= 500)
    all.push(
      ...(await Promise.all(Array.from({ length: Math.min(500, left) }, () => open(localAddress)))),
    )
  return all
}
const destroyAll = async (all: readonly Kept[]) => {
  for (const { socket } of all) socket.destroy()
  await expect.poll(() => all.every(({ closed }) => closed)).toBe(true)
}
const metric = async (name: string): Promise<number> => {
  const { text } = await service.admin('/metrics')
  const line = text.split('\n').find((one) => one.startsWith(name))
  return Number(line?.split(' ').at(-1))
}
const served = async () =>
  (await service.call(member, 'admin/ListEffectiveRateLimits', { organization_id })).status

describe('idle connections', () => {
  it('of one address are closed beyond its limit, and other addresses are served', async () => {
    const all = await openMany(attempts, '127.0.0.2')
    await expect.poll(() => all.filter(({ closed }) => !closed).length).toBe(perAddress)
    const refusals = all.filter(({ text }) => text.startsWith('HTTP/1.1 429'))
    expect(refusals.length).toBeGreaterThan(attempts * 0.9)
    expect(refusals[0]?.text).toMatch(
      /retry-after: 1\r\n.*\r\ndate: \w{3}, .* GMT\r\n\r\n.*"reason":"TOO_MANY_CONNECTIONS"/s,
    )
    expect(await served()).toBe(200)
    expect(
      await metric('portolan_http_refused_total{what="connection",bound="address"}'),
    ).toBeGreaterThanOrEqual(attempts - perAddress)
    await destroyAll(all)
    const [again] = await openMany(1, '127.0.0.2')
    again?.socket.write('GET /health HTTP/1.1\r\nhost: x\r\n\r\n')
    await expect.poll(() => again?.text).toMatch(/^HTTP\/1\.1 200/)
    again?.socket.destroy()
  })

  it('of many addresses are closed beyond the limit of all', async () => {
    const groups = await Promise.all(
      [3, 4, 5, 6].map((last) => openMany(perAddress, `127.0.0.${last}`)),
    )
    const all = groups.flat()
    await expect
      .poll(() => all.filter(({ text }) => text.startsWith('HTTP/1.1 503')).length)
      .toBeGreaterThan(50)
    await expect.poll(() => all.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(120)
    await destroyAll(all)
    await expect.poll(() => served()).toBe(200)
  })
})

describe('large bodies that are never finished', () => {
  const head = (lines: string) =>
    `POST /v1/q/GetBlock HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${lines}content-length: ${bodyLimit}\r\n\r\n`
  const most = Buffer.alloc(bodyLimit - 1, ' ')

  it('are not kept when the request has no credentials', async () => {
    const all = await openMany(20, '127.0.0.7')
    for (const { socket } of all) socket.write(head(''))
    for (const { socket } of all) socket.write(most)
    await expect.poll(() => all.every(({ socket }) => socket.writableLength === 0)).toBe(true)
    expect(await metric('portolan_http_body_bytes ')).toBe(0)
    for (const { socket } of all) socket.write(' ')
    await expect.poll(() => all.every(({ text }) => text.startsWith('HTTP/1.1 401'))).toBe(true)
    await destroyAll(all)
  })

  it('with credentials that may be right have the room of their address', async () => {
    const all = await openMany(20, '127.0.0.8')
    const lines = 'x-api-key: plk_any\r\nx-api-nonce: 1\r\nx-api-signature: a\r\n'
    for (const { socket } of all) socket.write(head(lines))
    for (const { socket } of all) socket.write(most)
    await expect
      .poll(
        () => all.filter(({ text, closed }) => text.startsWith('HTTP/1.1 429') || closed).length,
      )
      .toBeGreaterThanOrEqual(17)
    expect(all.find(({ text }) => text !== '')?.text).toContain('TOO_MUCH_IN_FLIGHT')
    expect(await metric('portolan_http_body_bytes ')).toBeLessThanOrEqual(2 * bodyLimit)
    expect(
      await metric('portolan_http_refused_total{what="body",bound="address"}'),
    ).toBeGreaterThanOrEqual(17)
    expect(await served()).toBe(200)
    await destroyAll(all)
    await expect.poll(() => metric('portolan_http_body_bytes ')).toBe(0)
  })

  it('leave no room taken when they come to their end', async () => {
    const path = '/v1/admin/ListEffectiveRateLimits'
    const body = JSON.stringify({ organization_id }) + ' '.repeat(500_000)
    const signed = authHeaders(member, { path, body, nonce: nextNonce() })
    const lines = Object.entries(signed).map(([name, value]) => `${name}: ${value}\r\n`)
    const connection = await openRaw(service.base_url)
    connection.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n${body}`,
    )
    const [answer] = await connection.answers(1)
    expect(answer?.status).toBe(200)
    await expect.poll(() => metric('portolan_http_body_bytes ')).toBe(0)
    connection.destroy()
  })
})
