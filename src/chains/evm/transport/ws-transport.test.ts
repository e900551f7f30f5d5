import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { systemClock } from '../../../lib/clock.ts'
import { createTimers } from './timers.ts'
import type { TransportCall, TransportOutcome } from './transport.ts'
import { createWsTransport } from './ws-transport.ts'

const maxReplyBytes = 10_000

type Refusal = 'refuses' | 'closes' | 'says goodbye to'

/** A node whose replies the test writes. */
const start = async ({ maxConnections = 10, refusal = 'closes' as Refusal } = {}) => {
  const timers = createTimers(systemClock)
  const verifyClient = () => refusal !== 'refuses' || sockets.length < maxConnections
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', verifyClient })
  await once(server, 'listening')
  const sockets: WebSocket[] = []
  const asked: { id: number; method: string; socket: WebSocket }[] = []
  server.on('connection', (socket) => {
    if (sockets.length === maxConnections) {
      if (refusal === 'closes') return socket.terminate()
      socket.ping('one')
      return socket.close(1013, 'one connection only')
    }
    sockets.push(socket)
    socket.on('message', (data) => asked.push({ ...JSON.parse(String(data)), socket }))
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
  const call = async (method: string, options: Partial<TransportCall> = {}) => {
    const { promise, resolve } = Promise.withResolvers<TransportOutcome>()
    const before = asked.length
    const usual = { params: '[]', timeoutMs: 20_000, idempotent: true }
    let count = 0
    const done = (outcome: TransportOutcome): void => {
      count++
      resolve(outcome)
    }
    transport.send({ method, ...usual, ...options, done })
    await expect.poll(() => asked.length).toBe(before + 1)
    const { id, socket } = asked.at(-1)!
    return { id, socket, outcome: promise, answers: () => count }
  }
  return { call, closes, asked, sockets, socket: sockets[0]!, transport }
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

test('an answer whose long strings are not needed comes over a connection of its own, at any length of them', async () => {
  const { call, closes, sockets, socket } = await start()
  const trace = await call('debug_traceTransaction', { longestString: 100 })
  const other = await call('eth_chainId')
  expect([other.socket === socket, trace.socket === sockets[1]]).toEqual([true, true])
  const input = 'ab'.repeat(3 * maxReplyBytes)
  // Its beginning is there, and the call over the first connection is answered nevertheless.
  trace.socket.send(`{"jsonrpc":"2.0","id":${trace.id},"result":{"input":"${input}`, { fin: false })
  socket.send(`{"jsonrpc":"2.0","id":${other.id},"result":"0x1"}`)
  expect(await other.outcome).toEqual({ ok: true, result: '"0x1"' })
  trace.socket.send(`${input}","to":"0x5"}}`)
  expect(await trace.outcome).toEqual({ ok: true, result: '{"input":"~","to":"0x5"}' })
  const whole = await call('debug_traceTransaction')
  expect(whole.socket).toBe(socket)
  socket.send(`{"jsonrpc":"2.0","id":${whole.id},"result":"${'a'.repeat(200)}"}`)
  expect(await whole.outcome).toEqual({ ok: true, result: `"${'a'.repeat(200)}"` })
  expect([closes, sockets.length]).toEqual([[], 2])
})

test('what is still too large without them fails its call only, and what has no end the second connection only', async () => {
  const { call, closes, sockets } = await start()
  const many = await call('debug_traceTransaction', { longestString: 100 })
  const small = await call('trace_transaction', { longestString: 100 })
  const frames = JSON.stringify(Array.from({ length: maxReplyBytes / 4 }, () => 'short'))
  many.socket.send(`{"jsonrpc":"2.0","id":${many.id},"result":${frames}}`)
  expect(await many.outcome).toEqual(isTooLarge)
  const endless = await call('debug_traceTransaction', { longestString: 100 })
  const text = `{"jsonrpc":"2.0","id":${endless.id},"result":"${'ab'.repeat(9 * maxReplyBytes)}"}`
  endless.socket.send(text)
  expect(await endless.outcome).toEqual(isTooLarge)
  expect(await small.outcome).toMatchObject({ failed: 'interrupted' })
  const again = await call('debug_traceTransaction', { longestString: 100 })
  expect([closes, sockets.length, again.socket === sockets[2]]).toEqual([[], 3, true])
})

test.each<Refusal>(['refuses', 'closes', 'says goodbye to'])(
  'a node that %s a second connection answers over the first one',
  async (refusal) => {
    const { call, closes, socket } = await start({ maxConnections: 1, refusal })
    for (let turn = 0; turn < 2; turn++) {
      const trace = await call('debug_traceTransaction', { longestString: 100 })
      expect(trace.socket).toBe(socket)
      socket.send(`{"jsonrpc":"2.0","id":${trace.id},"result":{}}`)
      expect(await trace.outcome).toEqual({ ok: true, result: '{}' })
    }
    expect(closes).toEqual([])
  },
)

test('an answer that breaks off on the second connection is not asked for over the first one', async () => {
  const { call, closes, asked } = await start()
  const trace = await call('debug_traceTransaction', { longestString: 100 })
  const text = `{"jsonrpc":"2.0","id":${trace.id},"result":{"input":"${large}`
  await new Promise((resolve) => trace.socket.send(text, { fin: false }, resolve))
  // Its bytes leave before the connection ends.
  trace.socket.close()
  expect(await trace.outcome).toMatchObject({ failed: 'closed' })
  const next = await call('debug_traceTransaction', { longestString: 100 })
  expect([asked.length, closes]).toEqual([2, []])
  expect(next.socket).not.toBe(trace.socket)
})

test.each(['stop', 'abandon'] as const)(
  '%s reaches calls of a connection that was replaced',
  async (name) => {
    const { call, sockets, transport } = await start()
    const old = await call('trace_transaction', { longestString: 100 })
    const late = await call('debug_traceTransaction', { longestString: 100, timeoutMs: 50 })
    expect(await late.outcome).toMatchObject({ failed: 'timeout' })
    const next = await call('debug_traceTransaction', { longestString: 100 })
    expect(next.socket === old.socket).toBe(false)
    const expected = name === 'stop' ? 'closed' : 'stalled'
    if (name === 'stop') await transport.stop()
    else transport.abandon('the node stalls')
    for (const { outcome } of [old, next]) expect(await outcome).toMatchObject({ failed: expected })
    // The one that was replaced ends with the last of its calls.
    await expect.poll(() => old.socket.readyState).toBe(old.socket.CLOSED)
    expect([sockets.length, old.answers(), next.answers()]).toEqual([3, 1, 1])
  },
)

test('a second connection that has brought nothing in time is replaced', async () => {
  const { call, closes, sockets } = await start()
  const other = await call('trace_transaction', { longestString: 100 })
  const late = await call('debug_traceTransaction', { longestString: 100, timeoutMs: 50 })
  expect(await late.outcome).toMatchObject({ failed: 'timeout' })
  const next = await call('debug_traceTransaction', { longestString: 100 })
  expect([late.socket === sockets[1], next.socket === sockets[2]]).toEqual([true, true])
  // It ends after the last call that it has.
  other.socket.send(`{"jsonrpc":"2.0","id":${other.id},"result":{}}`)
  expect(await other.outcome).toEqual({ ok: true, result: '{}' })
  await expect.poll(() => other.socket.readyState).toBe(other.socket.CLOSED)
  expect(closes).toEqual([])
})
