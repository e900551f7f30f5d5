import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import WebSocket from 'ws'
import { connect } from '../gateway-ws/client.ts'
import { startStreams, testLog } from '../gateway-ws/gateway-ws.ts'
import { waitFor } from '../helpers/wait-for.ts'

const many = {
  server: { connections_per_address: 100_000 },
  gateway: {
    connections_per_key: 100_000,
    subscriptions_per_key: 100_000,
    filter_terms_per_key: 10_000_000,
    filter_terms_per_organization: 10_000_000,
  },
}

/** A handshake and then bytes as they are, which no library would send. */
async function openRaw(url: string): Promise<Socket> {
  const { hostname, port, pathname } = new URL(url)
  const socket = connectTcp(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  const key = randomBytes(16).toString('base64')
  socket.write(
    `GET ${pathname} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  )
  await once(socket, 'data')
  return socket
}

/** A masked frame of a client; the mask is zero, so that the payload stays as it is. */
const clientFrame = (opcode: number, payload: Buffer, fin = true): Buffer =>
  Buffer.concat([Buffer.of((fin ? 0x80 : 0) | opcode, 0x80 | payload.length, 0, 0, 0, 0), payload])

test('a client that never reads is closed with 1013, and its neighbour gets everything', async () => {
  const { gateway, nodes, open, branch } = await startStreams({ config: many })
  const node = nodes[0]!
  const stuck = await open()
  const reader = await open()
  const isClosed = async () => {
    const { text } = await gateway.admin('/metrics')
    return /^portolan_gateway_slow_clients_total(?:\{.*\})? 1$/m.test(text)
  }
  const stuckLogs = await stuck.subscribe('logs')
  const logs = await reader.subscribe('logs')
  stuck.ws.pause()
  const perBlock = Array.from({ length: 2_500 }, (_, index) => testLog(index))
  for (let block = 1; block <= 20; block++) {
    node.show(branch(node.node.head, [perBlock]))
    await waitFor('the neighbour', () => reader.pushes(logs).length === block * 2_500)
    // The word of goodbye waits for it, but not for long.
    if (await isClosed()) stuck.ws.resume()
  }
  expect(await stuck.closed).toEqual({
    code: 1013,
    reason: '10000 notifications were not read in time',
  })
  const got = stuck.pushes(stuckLogs)
  expect(got.length).toBeLessThan(40_000)
  expect(got).toEqual(reader.pushes(logs).slice(0, got.length))
})

test('it is closed at exactly 10,000 notifications that the kernel did not take', async () => {
  const { gateway, nodes, open, branch } = await startStreams({ config: many })
  const node = nodes[0]!
  const stuck = await open()
  const id = await stuck.subscribe('logs')
  const read = async (name: string): Promise<number> => {
    const { text } = await gateway.admin('/metrics')
    return Number(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, 'm').exec(text)?.[1])
  }
  const pushed = () => read('portolan_gateway_notifications_total')
  const isClosed = async () => (await read('portolan_gateway_slow_clients_total')) === 1
  stuck.ws.pause()
  const perBlock = Array.from({ length: 2_500 }, (_, index) => testLog(index))
  for (let block = 1; !(await isClosed()); block++) {
    node.show(branch(node.node.head, [perBlock]))
    const isNotified = async () => (await pushed()) === block * 2_500 || (await isClosed())
    await waitFor('the logs of the block', isNotified)
  }
  const notified = await pushed()
  stuck.ws.resume()
  expect(await stuck.closed).toMatchObject({ code: 1013 })
  // The last one that was read is the one that the kernel had begun to take: one of the 10,000.
  expect(stuck.pushes(id)).toHaveLength(notified - 10_000 + 1)
})

test('10,000 subscriptions on one connection', async () => {
  const { world, nodes, open } = await startStreams({ config: many })
  const node = nodes[0]!
  const client = await open()
  for (let from = 0; from < 10_000; from += 1_000)
    client.send(
      JSON.stringify(
        Array.from({ length: 1_000 }, (_, index) => ({
          jsonrpc: '2.0',
          id: from + index,
          method: 'eth_subscribe',
          params: ['logs', testLog(from + index)],
        })),
      ),
    )
  await waitFor('all answers', () => client.messages.length === 10)
  // Batches are answered as they are done, not in the order in which they were sent.
  const ids: string[] = []
  for (const { id, result } of client.messages.flat()) ids[id] = result
  expect(new Set(ids).size).toBe(10_000)
  node.show(world.mine(node.node.head, [testLog(1), testLog(9_999), testLog(77_777)]))
  await waitFor('two notifications', () => client.messages.length === 12)
  expect(client.messages.slice(10).map(({ params }) => params.subscription)).toEqual([
    ids[1],
    ids[9_999],
  ])
  client.ws.terminate()
})

test('5,000 idle connections cost little, and all of them get a head', {
  timeout: 240_000,
}, async () => {
  const { world, nodes, url } = await startStreams({ config: many })
  const node = nodes[0]!
  let heard = 0
  const clients: WebSocket[] = []
  onTestFinished(() => {
    for (const client of clients) client.terminate()
  })
  for (let wave = 0; wave < 50; wave++)
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const client = new WebSocket(url(), { perMessageDeflate: false })
        clients.push(client)
        await once(client, 'open')
        client.send('{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}')
        await once(client, 'message')
        client.on('message', () => heard++)
      }),
    )
  const before = process.memoryUsage().rss
  for (let block = 0; block < 3; block++) {
    node.show(world.mine(node.node.head))
    await waitFor('all of them', () => heard === (block + 1) * 5_000, {
      timeoutMs: 60_000,
    })
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(300e6)
})

test('a flood of pings from a client that reads nothing fills no memory', async () => {
  const { url, open } = await startStreams({ config: many })
  const socket = await openRaw(url())
  socket.pause()
  const neighbour = await open()
  const pings = Buffer.concat(
    Array.from({ length: 10_000 }, () => clientFrame(9, Buffer.alloc(100))),
  )
  const before = process.memoryUsage().rss
  for (let round = 0; round < 30; round++)
    if (!socket.write(pings)) await Promise.race([once(socket, 'drain'), delay(1_000)])
  const begun = Date.now()
  expect((await neighbour.call('eth_blockNumber')).result).toBe('0x66')
  expect(Date.now() - begun).toBeLessThan(10_000)
  expect(process.memoryUsage().rss - before).toBeLessThan(150e6)
})

test('frames of one byte are put together, and too many of them end the connection', async () => {
  const { url } = await startStreams({ config: many })
  const socket = await openRaw(url())
  const call = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}')
  const frames = [...call].map((byte, index) =>
    clientFrame(index === 0 ? 1 : 0, Buffer.of(byte), index === call.length - 1),
  )
  for (const frame of frames) socket.write(frame)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(String(answer)).toContain('"result":"0x66"')
  const endless = Buffer.concat(
    Array.from({ length: 20_000 }, (_, index) =>
      clientFrame(index === 0 ? 1 : 0, Buffer.from(' '), false),
    ),
  )
  const closed = once(socket, 'close')
  socket.write(endless)
  socket.resume()
  await closed
})

test('a frame of 100 MB is refused before it is read', async () => {
  const { url } = await startStreams({ config: many })
  const client = await connect(url())
  client.ws.send(Buffer.alloc(100_000_000, ' '))
  expect(await client.closed).toMatchObject({ code: 1009 })
  const neighbour = await connect(url())
  expect((await neighbour.call('eth_blockNumber')).result).toBe('0x66')
})
