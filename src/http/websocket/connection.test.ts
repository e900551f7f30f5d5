import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocketServer } from 'ws'
import type { Serve } from '../../gateway/rpc/serve.ts'
import { defaultConnectionLimits, openConnection } from './connection.ts'

const principal = { organization_id: 'o', credential_id: 'k' } as never

/** Counts what happens in each turn of the event loop. */
const createCounter = () => {
  let inTurn = 0
  const counter = { most: 0, all: 0 }
  const count = () => {
    if (inTurn++ === 0)
      setImmediate(() => {
        inTurn = 0
      })
    counter.all++
    counter.most = Math.max(counter.most, inTurn)
  }
  return { counter, count }
}

/** A connection on a real socket, which answers each message with itself, and its client without a library. */
const createBench = async (answerBytes?: number) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const messages = createCounter()
  const serve = ((_network, _principal, body, done) => {
    messages.count()
    done({ body: answerBytes ? 'x'.repeat(answerBytes) : body } as never)
  }) as Serve
  const sockets = new WebSocketServer({ noServer: true, clientTracking: false, autoPong: false })
  server.on('upgrade', (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (ws) => {
      openConnection({
        ...{ ws, socket, serve, principal, client: '', number: 1, openTime: 0, request_id: '' },
        network: {} as never,
        streams: { open: () => ({ stop() {} }) } as never,
        access: { isSampled: () => false } as never,
        limits: defaultConnectionLimits,
        check: () => principal,
        onClosed() {},
        onOverflow() {},
      })
    }),
  )
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  // Of a connection that the server ends while it is written to.
  socket.on('error', () => {})
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  const key = Buffer.alloc(16).toString('base64')
  socket.write(
    `GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  )
  await once(socket, 'data')
  let received = Buffer.alloc(0)
  socket.on('data', (data: Buffer) => {
    received = Buffer.concat([received, data])
  })
  return { socket, messages: messages.counter, received: () => received }
}

const textFrame = (text: string) =>
  Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])

const call = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"a"}`

test('calls that come at once are all answered in their order, those of one read in a turn', async () => {
  const { socket, received, messages } = await createBench()
  const texts = Array.from({ length: 20_000 }, (_, at) => call(at + 10_000))
  socket.write(Buffer.concat(texts.map(textFrame)))
  const length = texts[0]!.length + 2
  await expect.poll(() => received().length, { timeout: 30_000 }).toBe(20_000 * length)
  const answers = received().toString('latin1')
  expect(texts.every((text, at) => answers.startsWith(text, at * length + 2))).toBe(true)
  // 64 messages pause it, and the rest of their read is there already. The next turn may begin before it is counted.
  expect(messages.most).toBeLessThan(2 * (64 + 65_536 / textFrame(texts[0]!).length))
})

test('pings that come at once have one answer in a turn, and the last one is answered', async () => {
  const { socket, received } = await createBench()
  const ping = (at: number) => Buffer.from([0x89, 0x84, 0, 0, 0, 0, ...Buffer.from(`${at}`)])
  socket.write(Buffer.concat(Array.from({ length: 9_000 }, (_, at) => ping(at + 1_000))))
  await expect.poll(() => received().toString('latin1').endsWith('9999')).toBe(true)
  expect(received().length).toBeLessThan(100 * 6)
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(received().toString('latin1').endsWith('9999')).toBe(true)
})

test('a ping that comes behind an answer which the client does not read yet is answered', async () => {
  const bytes = 8_000_000
  const { socket, received } = await createBench(bytes)
  socket.pause()
  socket.write(textFrame(call(1)))
  await new Promise((resolve) => setTimeout(resolve, 50))
  const ping = (at: number) => Buffer.from([0x89, 0x81, 0, 0, 0, 0, ...Buffer.from(`${at}`)])
  socket.write(ping(1))
  await new Promise((resolve) => setTimeout(resolve, 50))
  socket.resume()
  await expect.poll(() => received().length).toBeGreaterThan(bytes)
  const pong = (at: number) => Buffer.from([0x8a, 1, ...Buffer.from(`${at}`)])
  await expect.poll(() => received().subarray(-3)).toEqual(pong(1))
  socket.write(ping(2))
  await expect.poll(() => received().subarray(-3)).toEqual(pong(2))
})

test('more messages in one read than calls can be end the connection, and the rest is not served', async () => {
  const { socket, messages } = await createBench()
  socket.write(Buffer.concat(Array.from({ length: 20_000 }, () => textFrame('1'))))
  await expect.poll(() => socket.destroyed).toBe(true)
  expect(messages.all).toBeLessThan(3_000)
})
