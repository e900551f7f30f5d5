import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { systemClock } from '../../../lib/clock.ts'
import { createTimers } from './timers.ts'
import type { TransportOutcome } from './transport.ts'
import { createWsTransport } from './ws-transport.ts'

const maxReplyBytes = 10_000

/** A node whose replies the test writes. */
const start = async () => {
  const timers = createTimers(systemClock)
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const sockets: WebSocket[] = []
  const asked: { id: number; method: string }[] = []
  server.on('connection', (socket) => {
    sockets.push(socket)
    socket.on('message', (data) => asked.push(JSON.parse(String(data))))
  })
  const closes: string[] = []
  const { promise: opened, resolve } = Promise.withResolvers<void>()
  const { port } = server.address() as { port: number }
  const transport = createWsTransport({
    url: new URL(`ws://127.0.0.1:${port}`),
    headers: {},
    maxReplyBytes,
    connectTimeoutMs: 10_000,
    timers,
    clock: systemClock,
    random: Math.random,
    onOpen: resolve,
    onPush: () => {},
    onClose: (reason) => closes.push(reason),
  })
  onTestFinished(async () => {
    await transport.stop()
    timers.stop()
    for (const socket of sockets) socket.terminate()
    server.close()
  })
  await opened
  const call = async (method: string) => {
    const { promise, resolve } = Promise.withResolvers<TransportOutcome>()
    const before = asked.length
    transport.send({ method, params: '[]', timeoutMs: 20_000, idempotent: true, done: resolve })
    await expect.poll(() => asked.length).toBe(before + 1)
    return { id: asked.at(-1)!.id, outcome: promise }
  }
  return { call, closes, sockets, socket: sockets[0]! }
}

const large = 'ab'.repeat(maxReplyBytes)
const isTooLarge = { failed: 'too_large', detail: `more than ${maxReplyBytes} bytes` }

test.each([
  ['the id first', (id: number) => `{"jsonrpc":"2.0","id":${id},"result":"${large}"}`],
  ['the id last', (id: number) => `{"jsonrpc":"2.0","result":"${large}","id":${id}}`],
])('a reply over the limit fails its call only, with %s', async (_, textOf) => {
  const { call, closes, sockets, socket } = await start()
  const other = await call('eth_getLogs')
  for (const isFragmented of [false, true]) {
    const failed = await call('eth_call')
    const text = textOf(failed.id)
    if (isFragmented)
      for (let at = 0; at < text.length; at += 1_000)
        socket.send(text.slice(at, at + 1_000), { fin: at + 1_000 >= text.length })
    else socket.send(text)
    expect(await failed.outcome).toEqual(isTooLarge)
  }
  socket.send(`{"jsonrpc":"2.0","id":${other.id},"result":[]}`)
  expect(await other.outcome).toEqual({ ok: true, result: '[]' })
  expect([closes, sockets.length]).toEqual([[], 1])
})

test('where the reply does not show its id, the likeliest calls fail and the others continue', async () => {
  const { call, closes, socket } = await start()
  const small = await call('eth_chainId')
  const trace = await call('debug_traceTransaction')
  socket.send(`{"jsonrpc":"2.0","result":"${large}","id":${trace.id},"more":"${'x'.repeat(100)}"}`)
  expect(await trace.outcome).toEqual(isTooLarge)
  socket.send(`{"jsonrpc":"2.0","id":${small.id},"result":"0x1"}`)
  expect(await small.outcome).toEqual({ ok: true, result: '"0x1"' })
  expect(closes).toEqual([])
})

test('a reply of more than four times the limit ends the connection, and only its call counts as failed', async () => {
  const { call, closes, socket } = await start()
  const trace = await call('debug_traceTransaction')
  const large = await call('eth_call')
  const small = await call('eth_chainId')
  socket.send(`{"jsonrpc":"2.0","id":${large.id},"result":"${'ab'.repeat(5 * maxReplyBytes)}"}`)
  expect(await large.outcome).toEqual(isTooLarge)
  for (const { outcome } of [trace, small])
    expect(await outcome).toMatchObject({ failed: 'interrupted' })
  expect(closes).toHaveLength(1)
})

test('where such a reply does not show its id, the likeliest calls count as failed', async () => {
  const { call, socket } = await start()
  const trace = await call('debug_traceTransaction')
  const small = await call('eth_chainId')
  socket.send(`{"jsonrpc":"2.0","result":"${'ab'.repeat(5 * maxReplyBytes)}","id":${trace.id}}`)
  expect(await trace.outcome).toEqual(isTooLarge)
  expect(await small.outcome).toMatchObject({ failed: 'interrupted' })
})
