import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Served } from '../../gateway/rpc/served.ts'
import { createBareSockets } from './bare-sockets.ts'
import type { GatewayFront } from './gateway-front.ts'

const served = (body: string): Served => ({
  status: 200,
  body,
  decision: undefined,
  hit: undefined,
  number: -1,
  hash: '',
  retryAfter: undefined,
})

/** Answers every request with as many bytes, at once or a little later. */
const start = async (options: {
  bytes: number
  keepAliveTimeoutMs: number
  lateMs?: number
  onRequest?(): void
}) => {
  const front = {
    bodyLimitBytes: 1_000,
    find: () => ({ path: '', network: undefined, key: '', client: '' }),
    requestId: () => 'r',
    admit: () => ({ principal: { organization_id: 'o' } }) as never,
    answer: (_in, _id, _body, done) => {
      options.onRequest?.()
      const reply = () => done(served(`${'x'.repeat(options.bytes - 1)}y`))
      if (options.lateMs === undefined) reply()
      else setTimeout(reply, options.lateMs)
    },
    linesOf: ({ body }) => `content-length: ${body.length}\r\n`,
  } as Partial<GatewayFront> as GatewayFront
  const given: Socket[] = []
  const { accept, close, drain } = createBareSockets({
    front,
    clientOf: () => '',
    handOver: (socket) => given.push(socket),
    keepAliveTimeoutMs: options.keepAliveTimeoutMs,
  })
  const accepted: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket)
    accept(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as { port: number }
  const client = connect(port, '127.0.0.1')
  onTestFinished(() => {
    client.destroy()
    for (const socket of accepted) socket.destroy()
    server.close()
  })
  client.on('error', () => {})
  await once(client, 'connect')
  return { client, accepted, given, close, drain }
}

const request = 'POST /c/m/v1/k HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}'

it('a client that takes no byte of its answer loses its connection', async () => {
  const { client, accepted } = await start({ bytes: 30_000_000, keepAliveTimeoutMs: 100 })
  client.pause()
  client.write(request)
  await expect.poll(() => accepted[0]?.destroyed).toBe(true)
}, 60_000)

it('so does one that has said its last word before', async () => {
  const { client, accepted } = await start({
    bytes: 30_000_000,
    keepAliveTimeoutMs: 100,
    lateMs: 50,
  })
  client.pause()
  client.end(request)
  await expect.poll(() => accepted[0]?.destroyed).toBe(true)
}, 60_000)

it('a client that reads slowly gets all of its answer', async () => {
  // Longer than the time limit in all, and each pause far below it, also where CPU is scarce.
  const { client, accepted } = await start({ bytes: 30_000_000, keepAliveTimeoutMs: 3_000 })
  client.write(request)
  let size = 0
  client.on('data', (chunk) => {
    size += chunk.length
    client.pause()
    setTimeout(() => client.resume(), 10)
  })
  await expect.poll(() => size, { timeout: 90_000 }).toBeGreaterThan(30_000_000)
  await expect.poll(() => accepted[0]?.destroyed).toBe(true)
}, 120_000)

it('a connection that says nothing is given to Node without a listener left', async () => {
  const { accepted, given } = await start({ bytes: 1, keepAliveTimeoutMs: 100 })
  await expect.poll(() => given.length).toBe(1)
  const [socket] = accepted as [Socket]
  expect(['data', 'timeout', 'close', 'drain'].map((name) => socket.listenerCount(name))).toEqual([
    0, 0, 0, 0,
  ])
  expect(socket.timeout ?? 0).toBe(0)
})

/** All that comes until the server ends the connection, or as many answers as were asked for. */
const answersOf = (client: Socket, count: number) =>
  new Promise<{ text: string; isEnded: boolean }>((resolve) => {
    let text = ''
    let found = 0
    client.setEncoding('latin1').on('data', (chunk) => {
      text += chunk
      found += `${chunk}`.split('y').length - 1
      if (found === count) resolve({ text, isEnded: false })
    })
    client.on('end', () => resolve({ text, isEnded: true }))
  })

const sizesOf = (text: string) =>
  text
    .split('HTTP/1.1 200 OK')
    .slice(1)
    .map((one) => one.length - one.indexOf('\r\n\r\n') - 4)

describe('an answer in parts', () => {
  const bytes = 1_000_000

  it('comes whole, and requests behind it are answered after it', async () => {
    const { client } = await start({ bytes, keepAliveTimeoutMs: 5_000 })
    client.write(request + request + request)
    const { text, isEnded } = await answersOf(client, 3)
    expect(sizesOf(text)).toEqual([bytes, bytes, bytes])
    expect(isEnded).toBe(false)
    expect(text.match(/Connection: keep-alive/g)).toHaveLength(3)
  })

  it.each([
    ['at once', undefined],
    ['later', 20],
  ])('reaches a client that has said its last word, answered %s', async (_, lateMs) => {
    const { client } = await start({ bytes, keepAliveTimeoutMs: 5_000, ...(lateMs && { lateMs }) })
    client.end(request)
    const { text, isEnded } = await answersOf(client, 2)
    expect([sizesOf(text), isEnded]).toEqual([[bytes], true])
  })

  it('is the last one where the server closes or drains meanwhile', async () => {
    for (const how of ['close', 'drain'] as const) {
      const opened = await start({ bytes: 8 * bytes, keepAliveTimeoutMs: 5_000 })
      const answers = answersOf(opened.client, 3)
      opened.client.once('data', () => opened[how]())
      opened.client.write(request)
      if (how === 'drain') {
        await expect.poll(() => opened.client.bytesRead).toBeGreaterThan(8 * bytes)
        opened.client.write(request)
      }
      const { text, isEnded } = await answers
      expect(isEnded).toBe(true)
      expect(sizesOf(text)).toEqual(how === 'close' ? [8 * bytes] : [8 * bytes, 8 * bytes])
    }
  })

  it('leaves no timer and no listener behind', async () => {
    const { client, accepted } = await start({ bytes, keepAliveTimeoutMs: 5_000 })
    const count = () => {
      const [socket] = accepted as [Socket]
      return ['timeout', 'drain', 'data'].map((name) => socket.listenerCount(name))
    }
    client.write(request)
    await answersOf(client, 1)
    await expect.poll(count).toEqual([0, 0, 1])
    expect(accepted[0]?.timeout ?? 0).toBe(0)
  })
})

it('hundreds of requests that arrive at once are answered in turns, each of them', async () => {
  let inTurn = 0
  let most = 0
  const onRequest = () => {
    if (inTurn++ === 0)
      setImmediate(() => {
        inTurn = 0
      })
    most = Math.max(most, inTurn)
  }
  const { client, given } = await start({ bytes: 4, keepAliveTimeoutMs: 30_000, onRequest })
  let text = ''
  client.setEncoding('latin1').on('data', (part: string) => {
    text += part
  })
  // All of them fit into one read.
  client.end(request.repeat(900))
  await once(client, 'end')
  expect(text.split('xxxy')).toHaveLength(901)
  expect(given).toEqual([])
  // The count of a turn begins anew before or after the requests of the next one.
  expect(most).toBeLessThanOrEqual(2 * 32)
})
