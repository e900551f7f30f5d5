import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../gateway/gateway.ts'
import { startChain } from '../helpers/anvil.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { connect } from './client.ts'
import { startStreams } from './gateway-ws.ts'

const runtime = `7f${'e7'.repeat(32)}60006000a100`

test('two real nodes fork, the longer branch wins, and they agree again', async () => {
  const chain = await startChain(2)
  onTestFinished(() => chain.stop())
  const [a, b] = chain.nodes as [(typeof chain.nodes)[0], (typeof chain.nodes)[0]]
  const [from] = await a.call<string[]>('eth_accounts')
  const send = (node: typeof a, to: string | undefined, data = '0x') =>
    node.call<string>('eth_sendTransaction', [{ from, to, data, gas: '0x30d40' }])
  const created = await Promise.all(
    chain.nodes.map((node) => send(node, undefined, `0x6027600c60003960276000f3${runtime}`)),
  )
  await chain.mine()
  const { contractAddress } = await a.call<{ contractAddress: string }>(
    'eth_getTransactionReceipt',
    [created[0]],
  )
  const gateway = await startTestGateway([a.wsUrl, b.wsUrl])
  const client = await connect(
    `${gateway.app.ws_url}/c/mainnet/v1/ws/${gateway.tenant.member.api_key}`,
  )
  const heads = await client.subscribe('newHeads')
  const logs = await client.subscribe('logs', { address: contractAddress })
  const numbers = () => client.pushes(heads).map(({ number }) => Number(number))
  const removed = () => client.pushes(logs).map((log) => log.removed)

  for (let count = 0; count < 3; count++) {
    await send(a, contractAddress)
    await chain.mine(1, [a])
  }
  await waitFor('three logs', () => removed().length === 3)
  await chain.mine(3, [b])
  const headOfB = async (): Promise<number> => {
    const { json } = await gateway.admin('/status')
    return json.chains.c.nodes.mainnet.upstreams[1].head
  }
  await waitFor('the other branch is known', async () => (await headOfB()) === 4)
  expect(numbers()).toEqual([2, 3, 4])
  await chain.mine(1, [b])
  await waitFor('the longer branch', () => numbers().length === 7)
  expect(numbers()).toEqual([2, 3, 4, 2, 3, 4, 5])
  expect(removed()).toEqual([false, false, false, true, true, true])

  await a.call('anvil_reset')
  await chain.copy(b, a)
  await Promise.all(chain.nodes.map((node) => send(node, contractAddress)))
  await chain.mine()
  await waitFor('the common block', () => removed().length === 7)
  expect(numbers()).toEqual([2, 3, 4, 2, 3, 4, 5, 6])
  const parents = client.pushes(heads).slice(3)
  for (const [index, head] of parents.slice(1).entries())
    expect(head.parentHash).toBe(parents[index].hash)
  expect(client.ws.readyState).toBe(client.ws.OPEN)
})

test('no node counts as behind once the chain is rolled back', async () => {
  const { gateway, branch, nodes } = await startStreams({ nodes: 2 })
  const [{ node }] = nodes as [(typeof nodes)[0]]
  const first = node.head
  const tip = branch(
    first,
    Array.from({ length: 12 }, () => []),
  )
  const showAll = (head: typeof first) => {
    for (const one of nodes) one.show(head)
  }
  const head = async () => Number((await gateway.rpc('eth_blockNumber')).result)
  showAll(tip)
  await waitFor('the tip', async () => (await head()) === tip.number)
  showAll(first)
  const states = async () => {
    const { json } = await gateway.admin('/status')
    return json.chains.c.nodes.mainnet.upstreams.map(
      (one: { state: string; lag: number }) => `${one.state}, ${one.lag} behind`,
    )
  }
  await waitFor('the rollback', async () => (await head()) === first.number)
  expect(await states()).toEqual(['healthy, 0 behind', 'healthy, 0 behind'])
})
