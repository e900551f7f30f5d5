import { expect, test } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import { refusalOf } from './client.ts'
import { startStreams, testLog } from './gateway-ws.ts'

test('a handshake is refused with the status that fits', async () => {
  const { gateway, url, open } = await startStreams({
    config: { gateway: { connections_per_key: 2 } },
  })
  expect(await refusalOf(url('unknown'))).toMatchObject({
    status: 401,
    body: { id: null, error: { code: -32600, data: { reason: 'INVALID_KEY' } } },
  })
  const base = gateway.app.ws_url
  const key = gateway.tenant.member.api_key
  expect((await refusalOf(`${base}/c/nowhere/v1/ws/${key}`)).status).toBe(404)
  expect((await refusalOf(`${base}/x/mainnet/v1/ws/${key}`)).status).toBe(404)
  expect((await refusalOf(`${base}/somewhere`)).status).toBe(404)
  const first = await open()
  await open()
  expect(await refusalOf(url())).toMatchObject({ status: 429, body: { error: { code: -32005 } } })
  first.ws.close()
  await first.closed
  await waitFor('room for another', () =>
    open().then(
      () => true,
      () => false,
    ),
  )
})

test('calls, batches and malformed messages are answered on the socket', async () => {
  const { open } = await startStreams()
  const client = await open()
  expect((await client.call('eth_blockNumber')).result).toBe('0x66')
  client.send('  [{"jsonrpc":"2.0","id":12345678901234567890,"method":"net_version"},1]')
  client.send('{nonsense')
  client.send('[]')
  client.ws.send(Buffer.from([0xff, 0xfe]), { binary: true })
  client.ws.send(Buffer.from('{"jsonrpc":"2.0","id":"bin","method":"evm_blockNumber"}'))
  client.send('{"jsonrpc":"2.0","method":"evm_blockNumber"}')
  await waitFor('all answers', () => client.messages.length >= 6)
  const codes = client.messages.map((message) => message.error?.code).filter(Boolean)
  expect(codes.sort()).toEqual([-32600, -32700, -32700])
  expect(client.messages.find(({ id }) => id === 'bin').result).toBe('0x66')
  expect((await client.call('eth_blockNumber')).result).toBe('0x66')
})

test('rate limits have the same error, and the connection stays', async () => {
  const { gateway, open } = await startStreams()
  const poor = await gateway.createTenant(3)
  const client = await open(poor.member.api_key)
  for (let count = 0; count < 3; count++) await client.call('eth_blockNumber')
  expect((await client.call('eth_blockNumber')).error).toMatchObject({
    code: -32005,
    data: { reason: 'RATE_LIMITED', limit: 3 },
  })
  expect(client.ws.readyState).toBe(client.ws.OPEN)
})

test('a deleted credential closes its connections', async () => {
  const { gateway, open } = await startStreams()
  const { member, admin } = gateway.tenant
  const client = await open()
  const other = await open(admin.api_key)
  await client.subscribe('newHeads')
  const answer = await gateway.call(admin, 'admin/DeleteCredential', member)
  expect(answer.status).toBe(200)
  expect(await client.closed).toMatchObject({ code: 1008 })
  expect((await other.call('eth_blockNumber')).result).toBe('0x66')
})

test('at the end clients get a close frame to reconnect elsewhere', async () => {
  const { gateway, open } = await startStreams()
  const client = await open()
  const begun = Date.now()
  await gateway.stop()
  expect(await client.closed).toEqual({ code: 1001, reason: 'the service is stopping' })
  expect(Date.now() - begun).toBeLessThan(9_000)
})

test('heads and logs of a reorganization that the node announces only in part', async () => {
  const { world, nodes, open, branch } = await startStreams({ forgets: true })
  const [node] = nodes
  const client = await open()
  const heads = await client.subscribe('newHeads', { includeTransactions: true })
  const logs = await client.subscribe('logs', {})
  const one = await client.subscribe('logs', { address: [testLog(2).address] })
  const old = branch(node!.node.head, [[testLog(1)], [testLog(2)], [testLog(3)]])
  const base = node!.node.head
  node!.show(old)
  await waitFor('three heads', () => client.pushes(heads).length === 3)
  await waitFor('three logs', () => client.pushes(logs).length === 3)
  const next = branch(base, [[testLog(4)], [testLog(5)], [testLog(2)], [testLog(6)]])
  node!.show(next)
  await waitFor('four more logs', () => client.pushes(logs).length === 10)
  expect(client.pushes(heads).map(({ number }) => Number(number))).toEqual([
    103, 104, 105, 103, 104, 105, 106,
  ])
  expect(
    client.pushes(logs).map((log) => [Number(log.blockNumber), Number(log.topics[0]), log.removed]),
  ).toEqual([
    [103, 1, false],
    [104, 2, false],
    [105, 3, false],
    [103, 1, true],
    [104, 2, true],
    [105, 3, true],
    [103, 4, false],
    [104, 5, false],
    [105, 2, false],
    [106, 6, false],
  ])
  expect(client.pushes(one).map(({ removed }) => removed)).toEqual([false, true, false])
  const { method } = client.messages.find(({ params }) => params?.subscription === heads)
  expect(method).toBe('evm_subscription')
  expect(client.pushes(heads)[0]).not.toHaveProperty('transactions')
  expect((await client.call('evm_unsubscribe', [heads])).result).toBe(true)
  expect((await client.call('evm_unsubscribe', [heads])).result).toBe(false)
  node!.show(world.mine(next))
  await client.call('eth_blockNumber')
  expect(client.pushes(heads)).toHaveLength(7)
})

test('an answer of a batch comes before the first notification', async () => {
  const { world, nodes, open } = await startStreams()
  const client = await open()
  const [node] = nodes
  node!.slow = 'eth_getLogs'
  client.send(
    '[{"jsonrpc":"2.0","id":"s","method":"eth_subscribe","params":["newHeads"]},{"jsonrpc":"2.0","id":"b","method":"eth_getLogs","params":[{"blockHash":"' +
      `${node!.node.head.hash}"}]}]`,
  )
  await waitFor('the slow call', () => node!.methods.includes('eth_getLogs'))
  node!.show(world.mine(node!.node.head))
  await waitFor('the block is fetched', () => node!.methods.includes('eth_getBlockByHash'))
  await waitFor('the head', () => client.messages.length === 2)
  expect(client.messages[0]).toHaveLength(2)
  expect(client.messages[1].method).toBe('eth_subscription')
})

test('unknown subscriptions, wrong options and too many of them are refused', async () => {
  const { open } = await startStreams({ config: { gateway: { subscriptions_per_key: 2 } } })
  const client = await open()
  expect((await client.call('eth_subscribe', ['foo'])).error.code).toBe(-32601)
  expect((await client.call('eth_subscribe', ['logs', { address: '0x1' }])).error).toMatchObject({
    code: -32602,
  })
  expect((await client.call('eth_subscribe', ['newHeads', { resume: 1 }])).error.code).toBe(-32602)
  const ids = [await client.subscribe('newHeads'), await client.subscribe('newHeads')]
  expect(new Set(ids).size).toBe(2)
  expect((await client.call('eth_subscribe', ['newHeads'])).error.code).toBe(-32005)
  await client.call('eth_unsubscribe', [ids[0]])
  expect(await client.subscribe('newHeads')).toMatch(/^0x[1-9a-f][0-9a-f]{31}$/)
  for (const id of ['', ids[0], '0x1'])
    expect((await client.call('eth_unsubscribe', [id])).result).toBe(false)
})

test('filters and subscriptions of a key share a budget, which a closed connection gives back', async () => {
  const { gateway, open } = await startStreams({
    config: { gateway: { filter_terms_per_key: 150 } },
  })
  const address = Array.from({ length: 100 }, (_, at) => `0x${at.toString(16).padStart(40, '0')}`)
  const client = await open()
  await client.subscribe('logs', { address })
  const { error } = await gateway.rpc('eth_newFilter', [{ address }])
  expect(error).toMatchObject({
    code: -32005,
    data: { reason: 'TOO_MANY_OPEN', limit: 150, budget: 'filter_terms_per_key' },
  })
  client.ws.close()
  await waitFor('room for the filter', async () => {
    return (await gateway.rpc('eth_newFilter', [{ address }])).result !== undefined
  })
  const again = await open()
  expect((await again.call('eth_subscribe', ['logs', { address }])).error.code).toBe(-32005)
})

test('metrics and status show open subscriptions and sent notifications', async () => {
  const { gateway, world, nodes, open } = await startStreams()
  const node = nodes[0]!
  const client = await open()
  const heads = await client.subscribe('newHeads')
  await client.call('eth_newBlockFilter')
  node.show(world.mine(node.node.head))
  await waitFor('the head', () => client.pushes(heads).length === 1)
  const { text } = await gateway.admin('/metrics')
  const labels = '{chain="c",network="mainnet"}'
  expect(text).toContain(`portolan_gateway_connections${labels} 1`)
  expect(text).toContain(`portolan_gateway_subscriptions${labels} 1`)
  expect(text).toContain(`portolan_gateway_filters${labels} 1`)
  expect(text).toContain(`portolan_gateway_notifications_total${labels} 1`)
  expect(text).toContain(`portolan_gateway_feed_head${labels} 103`)
  expect(text).toContain('portolan_gateway_slow_clients_total 0')
  const { json } = await gateway.admin('/status')
  expect(json.chains.c.nodes.mainnet.streams).toEqual({
    connections: 1,
    subscriptions: 1,
    filters: 1,
    notifications: 1,
    head: 103,
  })
})
