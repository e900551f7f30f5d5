import { expect, test } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import type { TestClient } from './client.ts'
import { startStreams, testLog } from './gateway-ws.ts'

const hashOf = (value: number) => `0x${value.toString(16).padStart(64, 'a')}`
// biome-ignore lint/suspicious/noExplicitAny: a pushed log
const short = (log: any) => [Number(log.blockNumber), Number(log.topics[0]), log.removed]
const headsOf = (client: TestClient, id: string) =>
  client.pushes(id).map(({ number }) => Number(number))

test('an unannounced rollback is seen by polling, over HTTP alone', async () => {
  const { nodes, open, branch } = await startStreams({ transport: 'http', forgets: true })
  const node = nodes[0]!
  const base = node.node.head
  const client = await open()
  const heads = await client.subscribe('newHeads')
  const logs = await client.subscribe('logs')
  node.show(branch(base, [[testLog(1)], [testLog(2)]]))
  await waitFor('two logs', () => client.pushes(logs).length === 2)
  node.show(base)
  await waitFor('two removals', () => client.pushes(logs).length === 4)
  node.show(branch(base, [[testLog(3)]]))
  await waitFor('the new log', () => client.pushes(logs).length === 5)
  expect(client.pushes(logs).map(short)).toEqual([
    [103, 1, false],
    [104, 2, false],
    [103, 1, true],
    [104, 2, true],
    [103, 3, false],
  ])
  expect(headsOf(client, heads)).toEqual([103, 104, 103])
})

test('a block replaced at the same height without a notification', async () => {
  const { nodes, open, branch } = await startStreams({ forgets: true })
  const node = nodes[0]!
  const base = node.node.head
  const client = await open()
  const logs = await client.subscribe('logs')
  node.show(branch(base, [[testLog(1)]]))
  await waitFor('a log', () => client.pushes(logs).length === 1)
  node.show(branch(base, [[testLog(2)]]), true)
  await waitFor('the swap', () => client.pushes(logs).length === 3)
  expect(client.pushes(logs).map(short)).toEqual([
    [103, 1, false],
    [103, 1, true],
    [103, 2, false],
  ])
})

test('a node that lags takes nothing back, and the death of the first one is not noticed', async () => {
  const { world, nodes, open, branch } = await startStreams({ nodes: 2 })
  const [first, second] = nodes as [(typeof nodes)[0], (typeof nodes)[0]]
  const base = first.node.head
  const client = await open()
  const heads = await client.subscribe('newHeads')
  const logs = await client.subscribe('logs')
  const tip = branch(base, [[testLog(1)], [testLog(2)], [testLog(3)]])
  first.show(tip)
  await waitFor('three logs', () => client.pushes(logs).length === 3)
  second.show(world.get(world.get(tip.parent).parent))
  await first.kill()
  await new Promise((resolve) => setTimeout(resolve, 3_500))
  expect(client.pushes(logs)).toHaveLength(3)
  const next = branch(tip, [[testLog(4)], [testLog(5)]])
  second.show(next)
  await waitFor('two more', () => client.pushes(logs).length === 5)
  expect(headsOf(client, heads)).toEqual([103, 104, 105, 106, 107])
  expect(client.pushes(logs).every(({ removed }) => removed === false)).toBe(true)
})

test('filters belong to the key: over HTTP, over any socket, after a reorganization', async () => {
  const { gateway, nodes, open, branch } = await startStreams({ forgets: true })
  const node = nodes[0]!
  const base = node.node.head
  const client = await open()
  const { result: logs } = await client.call('evm_newFilter', [{ topics: [] }])
  const { result: blocks } = await gateway.rpc('eth_newBlockFilter')
  client.ws.terminate()
  const old = branch(base, [[testLog(1)], [testLog(2)]])
  node.show(old)
  const gathered: unknown[] = []
  const poll = async () => {
    gathered.push(...(await gateway.rpc('eth_getFilterChanges', [logs])).result)
    return gathered.length
  }
  await waitFor('two logs', async () => (await poll()) === 2)
  const next = branch(base, [[testLog(3)], [], []])
  node.show(next)
  await waitFor('the new ones', async () => (await poll()) === 5)
  expect(gathered.map(short)).toEqual([
    [103, 1, false],
    [104, 2, false],
    [103, 1, true],
    [104, 2, true],
    [103, 3, false],
  ])
  const again = await open()
  const { result: hashes } = await again.call('eth_getFilterChanges', [blocks])
  expect(hashes).toHaveLength(5)
  expect(hashes.at(-1)).toBe(next.hash)
  expect((await again.call('eth_getFilterChanges', [blocks])).result).toEqual([])
  const stranger = await gateway.createTenant()
  const foreign = { key: stranger.member.api_key }
  expect((await gateway.rpc('eth_getFilterChanges', [logs], foreign)).error).toMatchObject({
    code: -32000,
    message: 'filter not found',
  })
  expect((await gateway.rpc('eth_uninstallFilter', [logs], foreign)).result).toBe(false)
  expect((await gateway.rpc('eth_uninstallFilter', [logs])).result).toBe(true)
  expect((await gateway.rpc('eth_uninstallFilter', [logs])).result).toBe(false)
})

test.for(['ws', 'http'] as const)(
  'pending transactions of all nodes, each once, over %s',
  async (transport) => {
    const { gateway, world, nodes, open } = await startStreams({ nodes: 2, transport })
    const [first, second] = nodes as [(typeof nodes)[0], (typeof nodes)[0]]
    const base = first.node.head
    const client = await open()
    const id = await client.subscribe('newPendingTransactions', {})
    const { result: filter } = await gateway.rpc('eth_newPendingTransactionFilter')
    // No pause: what comes after the answer is delivered.
    first.announce(hashOf(1))
    second.announce(hashOf(1))
    second.announce(hashOf(2))
    await waitFor('both', () => client.pushes(id).length === 2)
    const heads = await client.subscribe('newHeads')
    const mined = world.mine(base, [], [hashOf(1), hashOf(2)])
    for (const node of nodes) node.show(mined)
    await waitFor('the block is delivered', () => headsOf(client, heads).at(-1) === 103)
    const other = world.mine(world.mine(base, [], [hashOf(2)]))
    for (const node of nodes) node.show(other)
    await waitFor('the first is pending again', () => client.pushes(id).length === 3)
    await waitFor('heads', () => headsOf(client, heads).at(-1) === 104)
    expect(client.pushes(id).toSorted()).toEqual([hashOf(1), hashOf(1), hashOf(2)])
    const { result } = await gateway.rpc('eth_getFilterChanges', [filter])
    expect(result).toEqual(client.pushes(id))
  },
)

test('syncing sends the current value first, then changes, then false', async () => {
  const { nodes, open } = await startStreams()
  const node = nodes[0]!
  node.syncing = '{"StartingBlock":"0x1","currentBlock":"0x2","highestBlock":"0x9"}'
  const client = await open()
  const id = await client.subscribe('syncing')
  await waitFor('the value', () => client.pushes(id).length === 1)
  node.syncing = 'false'
  await waitFor('the end', () => client.pushes(id).length === 2)
  expect(client.pushes(id)).toEqual([
    {
      syncing: true,
      status: {
        startingBlock: '0x1',
        currentBlock: '0x2',
        highestBlock: '0x9',
        pulledStates: '0x0',
        knownStates: '0x0',
      },
    },
    false,
  ])
  const late = await open()
  const own = await late.subscribe('syncing')
  await waitFor('the value at once', () => late.pushes(own).length === 1)
  expect(late.pushes(own)).toEqual([false])
})

test('resume replays what was missed, and continues', async () => {
  const { nodes, open, branch } = await startStreams()
  const node = nodes[0]!
  const base = node.node.head
  const first = await open()
  const logs = await first.subscribe('logs')
  const old = branch(base, [[testLog(1)], [testLog(2)]])
  node.show(old)
  await waitFor('two logs', () => first.pushes(logs).length === 2)
  first.ws.terminate()
  const next = branch(base, [[testLog(3)], [testLog(4)], [testLog(5)]])
  node.show(next)
  const again = await open()
  await waitFor('the head', async () => (await again.call('eth_blockNumber')).result === '0x69')
  const resumed = await again.subscribe('logs', { resume: old.hash })
  const heads = await again.subscribe('newHeads', { resume: base.hash })
  await waitFor('what was missed', () => again.pushes(resumed).length === 5)
  node.show(branch(next, [[testLog(6)]]))
  await waitFor('the next', () => again.pushes(resumed).length === 6)
  expect(again.pushes(resumed).map(short)).toEqual([
    [103, 1, true],
    [104, 2, true],
    [103, 3, false],
    [104, 4, false],
    [105, 5, false],
    [106, 6, false],
  ])
  expect(headsOf(again, heads)).toEqual([103, 104, 105, 106])
  expect((await again.call('eth_subscribe', ['logs', { resume: hashOf(1) }])).error).toMatchObject({
    code: -32000,
    data: { reason: 'RESUME_BLOCK_NOT_FOUND' },
  })
})

test('nothing is fetched without a subscriber', async () => {
  const { world, nodes, open } = await startStreams()
  const node = nodes[0]!
  const fetched = () => node.methods.filter((name) => /getBlockByHash|getLogs|Pending/.test(name))
  node.show(world.mine(node.node.head, [testLog(1)]))
  const client = await open()
  await waitFor('the block', async () => (await client.call('eth_blockNumber')).result === '0x67')
  expect(fetched()).toEqual([])
  const heads = await client.subscribe('newHeads')
  node.show(world.mine(node.node.head, [testLog(1)]))
  await waitFor('the head', () => client.pushes(heads).length > 0)
  expect(fetched()).not.toContain('eth_getLogs')
})
