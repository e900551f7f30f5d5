import { spawn } from 'node:child_process'
import { WebSocketProvider } from 'ethers'
import { createPublicClient, webSocket } from 'viem'
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { Web3 } from 'web3'
import { castPath } from '../../devnet/anvil/cast.ts'
import { startTestGateway } from '../gateway/gateway.ts'
import { startChain } from '../helpers/anvil.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { connect } from './client.ts'

const chain = await startChain(1)
const [anvil] = chain.nodes as [(typeof chain.nodes)[0]]
afterAll(() => chain.stop())
const gateway = await startTestGateway([anvil.wsUrl])
const url = `${gateway.app.ws_url}/c/mainnet/v1/ws/${gateway.tenant.member.api_key}`

const topic = `0x${'e7'.repeat(32)}` as const
// Each call emits one event without data.
const runtime = `7f${topic.slice(2)}60006000a100`
const [sender] = await anvil.call<string[]>('eth_accounts')
const sendTo = (to: string | undefined, data = '0x') =>
  anvil.call<string>('eth_sendTransaction', [{ from: sender, to, data, gas: '0x30d40' }])
const created = await sendTo(undefined, `0x6027600c60003960276000f3${runtime}`)
await chain.mine()
const { contractAddress } = await anvil.call<{ contractAddress: `0x${string}` }>(
  'eth_getTransactionReceipt',
  [created],
)

const subscriptions = async (): Promise<number> => {
  const { json } = await gateway.admin('/status')
  return json.chains.c.nodes.mainnet.streams.subscriptions
}
// Those of the test before go when its connection is closed.
beforeEach(() => waitFor('no subscription is open', async () => (await subscriptions()) === 0))
const subscribed = (count: number) =>
  waitFor(`${count} subscriptions`, async () => (await subscriptions()) === count)
/**
 * The gateway counts a subscription before its node is followed, and answers after that. Libraries do not show
 * that they were answered: while another client is subscribed to the same, both are one moment.
 */
const followed = async () => {
  const client = await connect(url)
  await client.subscribe('newHeads')
  await client.subscribe('logs', { address: contractAddress })
  return 2
}

const numberOf = async (hash: string): Promise<number> => {
  const receipt = await anvil.call<{ blockNumber: string }>('eth_getTransactionReceipt', [hash])
  return Number(receipt.blockNumber)
}

/** A block with one event in it. */
const emit = async () => {
  const hash = await sendTo(contractAddress)
  await chain.mine()
  return hash
}

test('viem watches blocks, events and pending transactions', async () => {
  const client = createPublicClient({ transport: webSocket(url) })
  const blocks: unknown[] = []
  const logs: { transactionHash: string | null; blockHash: string | null }[] = []
  const pending: string[] = []
  const stops = [
    client.watchBlocks({ onBlock: ({ hash }) => blocks.push(hash) }),
    client.watchEvent({ address: contractAddress, onLogs: (found) => logs.push(...found) }),
    client.watchPendingTransactions({ onTransactions: (hashes) => pending.push(...hashes) }),
  ]
  onTestFinished(async () => {
    for (const stop of stops) stop()
    ;(await client.transport.getRpcClient()).close()
  })
  // viem knows a subscription by its answer.
  const { subscriptions: answered } = await client.transport.getRpcClient()
  await waitFor('three answers', () => answered.size === 3)
  const hash = await emit()
  await waitFor('the event', () => logs.length === 1)
  // The block of the contract comes too when the gateway had not heard of it at the subscription, and
  // viem, which reads each block that it hears of, may give it after the newer one.
  await waitFor('the block', () => blocks.includes(logs[0]?.blockHash))
  expect(new Set(blocks).size).toBe(blocks.length)
  await waitFor('the transaction', () => pending.includes(hash))
  expect(logs[0]?.transactionHash).toBe(hash)
})

test('ethers follows blocks and logs', async () => {
  const others = await followed()
  const provider = new WebSocketProvider(url)
  onTestFinished(() => provider.destroy())
  const blocks: number[] = []
  const logs: { transactionHash: string }[] = []
  await provider.on('block', (number: number) => blocks.push(number))
  await provider.on({ address: contractAddress, topics: [topic] }, (log) => logs.push(log))
  await subscribed(others + 2)
  const hash = await emit()
  const number = await numberOf(hash)
  await waitFor('the log', () => logs.length === 1)
  await waitFor('the block', () => blocks.includes(number))
  expect(logs[0]?.transactionHash).toBe(hash)
})

test('web3.js subscribes to heads and logs', async () => {
  const web3 = new Web3(url)
  onTestFinished(() => web3.provider?.disconnect())
  const heads = await web3.eth.subscribe('newBlockHeaders')
  const logs = await web3.eth.subscribe('logs', { address: contractAddress, topics: [topic] })
  const seen: unknown[] = []
  const found: { transactionHash?: unknown }[] = []
  heads.on('data', ({ number }) => void seen.push(number))
  logs.on('data', (log) => void found.push(log))
  const hash = await emit()
  await waitFor('the log', () => found.length === 1)
  const number = await numberOf(hash)
  await waitFor('the head', () => seen.some((one) => Number(one) === number))
  expect(found[0]?.transactionHash).toBe(hash)
  await heads.unsubscribe()
})

test('a reorganization of a real node: removals that it never sends, and all heads', async () => {
  const client = await connect(url)
  const heads = await client.subscribe('newHeads')
  const logs = await client.subscribe('logs', { address: contractAddress })
  const { result: filter } = await client.call('eth_newFilter', [{ address: contractAddress }])
  for (let count = 0; count < 3; count++) await emit()
  await waitFor('three logs', () => client.pushes(logs).length === 3)
  const before = client.pushes(heads).length
  await anvil.call('anvil_reorg', [3, []])
  await waitFor('three removals', () => client.pushes(logs).length === 6)
  await waitFor('three heads', () => client.pushes(heads).length === before + 3)
  const numbers = client.pushes(heads).map(({ number }) => Number(number))
  expect(numbers.slice(before)).toEqual(numbers.slice(before - 3, before))
  expect(client.pushes(logs).map(({ removed }) => removed)).toEqual([
    ...[false, false, false],
    ...[true, true, true],
  ])
  expect(client.pushes(logs).slice(3)).toEqual(
    client
      .pushes(logs)
      .slice(0, 3)
      .map((log) => ({ ...log, removed: true })),
  )
  await anvil.call('anvil_rollback', [1])
  const last = numbers.at(-1)
  const hash = await emit()
  await waitFor('the log of the new branch', () => client.pushes(logs).length === 7)
  expect(Number(client.pushes(heads).at(-1).number)).toBe(last)
  expect(client.pushes(logs).at(-1).transactionHash).toBe(hash)
  const { result } = await client.call('eth_getFilterChanges', [filter])
  expect(result).toEqual(client.pushes(logs))
})

test('cast prints the logs that it subscribes to', async () => {
  const others = await followed()
  const args = ['logs', '--subscribe', '--rpc-url', url, '--address', contractAddress]
  const cast = spawn(await castPath(), args, { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void cast.kill('SIGKILL'))
  let text = ''
  for (const stream of [cast.stdout, cast.stderr])
    stream.on('data', (chunk) => {
      text += chunk
    })
  await subscribed(others + 1)
  const hash = await emit()
  await waitFor('the log', () => text.includes(hash))
})
