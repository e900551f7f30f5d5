import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import WebSocket from 'ws'
import { startStreams, testLog } from '../gateway-ws/gateway-ws.ts'
import { waitFor } from '../helpers/wait-for.ts'

test('1,000 subscribers do not notice that a node dies in the middle of a reorganization', async () => {
  const { nodes, url, branch } = await startStreams({
    nodes: 2,
    forgets: true,
    config: { gateway: { connections_per_key: 2_000 } },
  })
  const [first, second] = nodes as [(typeof nodes)[0], (typeof nodes)[0]]
  const clients: { ws: WebSocket; seen: string[]; isClosed: boolean }[] = []
  onTestFinished(() => {
    for (const { ws } of clients) ws.terminate()
  })
  const open = async (params: string) => {
    const ws = new WebSocket(url(), { perMessageDeflate: false })
    const client = { ws, seen: [] as string[], isClosed: false }
    clients.push(client)
    await once(ws, 'open')
    ws.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":${params}}`)
    await once(ws, 'message')
    ws.on('message', (data) => {
      const { result } = JSON.parse(String(data)).params
      const { number, hash, blockNumber, blockHash, removed } = result
      const kind = removed === undefined ? 'head' : removed ? 'removed' : 'log'
      client.seen.push(`${kind} ${Number(number ?? blockNumber)} ${hash ?? blockHash}`)
    })
    ws.on('close', () => {
      client.isClosed = true
    })
  }
  for (let wave = 0; wave < 10; wave++)
    await Promise.all(
      Array.from({ length: 100 }, (_, index) => open(index % 2 ? '["newHeads"]' : '["logs",{}]')),
    )
  const base = first.node.head
  const old = branch(base, [[testLog(1)], [testLog(2)], [testLog(3)]])
  for (const node of nodes) node.show(old)
  await waitFor('all clients', () => clients.every(({ seen }) => seen.length === 3))

  const next = branch(base, [[testLog(4)], [testLog(5)], [testLog(6)], [testLog(7)]])
  first.show(next)
  await first.kill()
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  second.show(next)
  const done = ({ seen }: { seen: string[] }) => seen.at(-1)?.endsWith(next.hash) === true
  await waitFor('all clients again', () => clients.every(done))

  const heads = clients.filter(({ seen }) => seen[0]?.startsWith('head'))
  const logs = clients.filter(({ seen }) => seen[0]?.startsWith('log'))
  expect([heads.length, logs.length]).toEqual([500, 500])
  for (const { seen } of heads) expect(seen).toEqual(heads[0]?.seen)
  for (const { seen } of logs) expect(seen).toEqual(logs[0]?.seen)
  const numbers = (seen: string[] | undefined) =>
    seen?.map((line) => line.split(' ').slice(0, 2).join(' '))
  expect(numbers(heads[0]?.seen)).toEqual(
    [103, 104, 105, 103, 104, 105, 106].map((n) => `head ${n}`),
  )
  expect(numbers(logs[0]?.seen)).toEqual([
    ...[103, 104, 105].map((n) => `log ${n}`),
    ...[103, 104, 105].map((n) => `removed ${n}`),
    ...[103, 104, 105, 106].map((n) => `log ${n}`),
  ])
  expect(clients.some(({ isClosed }) => isClosed)).toBe(false)
})
