import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { createPool } from './pool.ts'

const maxReplyBytes = 10_000
const hash = `0x${'11'.repeat(32)}`
const answers: Record<string, unknown> = {
  eth_chainId: '0x1',
  eth_syncing: false,
  eth_getBlockByNumber: { number: '0x5', timestamp: '0x5', hash, parentHash: hash },
  eth_getBalance: '0x7',
  eth_sendRawTransaction: hash,
}

type Call = { id: number; method: string; params: unknown[] }

/**
 * The calls of this test, which have no params, and those of probes. What a node can do is asked after a probe and is
 * answered always: a probe would wait for it until its time limit, 3 s in each round.
 */
const canHold = ({ method, params }: Call): boolean =>
  method === 'eth_sendRawTransaction' ||
  (['eth_call', 'eth_getBalance', 'eth_chainId'].includes(method) && params.length === 0)

/** A node that can hold its answers back, and then give one that is far too large. */
const start = async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const sockets: WebSocket[] = []
  const held: (Call & { socket: WebSocket })[] = []
  let isHolding = false
  const answer = (socket: WebSocket, { id, method }: Call) =>
    socket.send(
      method in answers
        ? JSON.stringify({ jsonrpc: '2.0', id, result: answers[method] })
        : JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown' } }),
    )
  server.on('connection', (socket) => {
    sockets.push(socket)
    socket.on('message', (data) => {
      const call = JSON.parse(String(data)) as Call
      if (isHolding && canHold(call)) held.push({ socket, ...call })
      else answer(socket, call)
    })
  })
  const { port } = server.address() as { port: number }
  const pool = createPool({
    network: 'c/test',
    prefix: 'eth',
    upstreams: [{ url: `ws://127.0.0.1:${port}` }],
    clock: systemClock,
    log: silentLog,
    limits: { maxReplyBytes, probeIntervalMs: 20 },
  })
  onTestFinished(async () => {
    await pool.stop()
    for (const socket of sockets) socket.terminate()
    server.close()
  })
  await expect.poll(() => pool.status()[0]!.state).toBe('healthy')
  const call = (method: string) =>
    pool.request({ method, params: '[]', idempotent: true, timeoutMs: 20_000 })
  return {
    ...{ pool, call, held, sockets },
    hold: () => {
      isHolding = true
    },
    /** Answers one call with far too much; later connections answer everything. */
    exceed: (method: string) => {
      isHolding = false
      const { socket, id } = held.find((one) => one.method === method)!
      socket.send(`{"jsonrpc":"2.0","id":${id},"result":"${'ab'.repeat(5 * maxReplyBytes)}"}`)
    },
  }
}

test('a reply that is far too large fails its call only, and the node stays in use', async () => {
  const { pool, call, held, sockets, hold, exceed } = await start()
  for (let round = 1; round <= 6; round++) {
    held.length = 0
    hold()
    const large = call('eth_call')
    const others = Array.from({ length: 20 }, () => call('eth_getBalance'))
    const sent = pool.broadcast('"0x02f8"')
    // With a probe under way, which must not count against the node either.
    await expect
      .poll(() =>
        ['eth_call', 'eth_chainId', 'eth_sendRawTransaction'].map((name) =>
          held.some(({ method }) => method === name),
        ),
      )
      .toEqual([true, true, true])
    exceed('eth_call')
    for (const outcome of await Promise.all(others))
      expect(outcome).toEqual({ ok: true, result: '"0x7"' })
    expect(await sent).toMatchObject({ ok: true })
    expect(await large).toEqual({ failure: 'REPLY_TOO_LARGE' })
    expect(pool.status()[0]!.breaker).toBe('closed')
    await expect.poll(() => pool.status()[0]!.state).toBe('healthy')
    expect(sockets).toHaveLength(1 + round)
  }
})
