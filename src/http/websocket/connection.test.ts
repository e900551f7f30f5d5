import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocketServer } from 'ws'
import type { Serve } from '../../gateway/rpc/serve.ts'
import { createTurns } from '../../lib/turns.ts'
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
const createBench = async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const messages = createCounter()
  const pings = createCounter()
  const serve = ((_network, _principal, body, done) => {
    messages.count()
    done({ body } as never)
  }) as Serve
  const sockets = new WebSocketServer({ noServer: true, clientTracking: false, autoPong: false })
  server.on('upgrade', (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (ws) => {
      ws.on('ping', pings.count)
      openConnection({
        ...{ ws, socket, serve, principal, client: '', number: 1, openTime: 0, request_id: '' },
        network: {} as never,
        streams: { open: () => ({ stop() {} }) } as never,
        access: { isSampled: () => false } as never,
        limits: defaultConnectionLimits,
        turns: createTurns({ perClient: 32, perTurn: 64 }),
        check: () => principal,
        onClosed() {},
        onOverflow() {},
      })
    }),
  )
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
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
  return { socket, messages: messages.counter, pings: pings.counter, received: () => received }
}

const textFrame = (text: string) =>
  Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])
const pingFrame = (text: string) =>
  Buffer.concat([Buffer.from([0x89, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])

test('thousands of messages that come at once are served in turns and answered in their order', async () => {
  const { socket, messages, received } = await createBench()
  const texts = Array.from({ length: 20_000 }, (_, at) => `${at}`.padStart(8, '0'))
  socket.write(Buffer.concat(texts.map(textFrame)))
  await expect.poll(() => received().length, { timeout: 30_000 }).toBe(20_000 * 10)
  expect(messages.all).toBe(20_000)
  // The count of a turn begins anew before or after the messages of the next one.
  expect(messages.most).toBeLessThanOrEqual(2 * 64 + 32)
  const answers = received().toString('latin1')
  expect(texts.every((text, at) => answers.slice(at * 10 + 2, at * 10 + 10) === text)).toBe(true)
})

test('of thousands of pings that come at once one part of a read is looked at in each turn, and the last is answered', async () => {
  const { socket, pings, received } = await createBench()
  const texts = Array.from({ length: 100_000 }, (_, at) => `${at}`.padStart(8, '0'))
  socket.write(Buffer.concat(texts.map(pingFrame)))
  await expect
    .poll(() => received().toString('latin1', received().length - 8), { timeout: 30_000 })
    .toBe('00099999')
  expect(pings.all).toBe(100_000)
  // 64 KiB in frames of 14 bytes, and what is left of one before.
  expect(pings.most).toBeLessThanOrEqual(4_683)
  expect(received().length / 10).toBeLessThan(1_000)
})
