import { Contract, type InterfaceAbi, JsonRpcProvider } from 'ethers'
import { createPublicClient, type Hex, http, type PublicClient } from 'viem'
import { foundry } from 'viem/chains'
import { afterAll, describe, expect, it } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { startTestGateway, type TestGateway } from './gateway.ts'

// The same calls to a bare node and through the gateway: the answers are the same, byte for byte, or the
// reason why they are not is here and in docs/decisions/gateway.md.

const anvil = await startAnvil({ timestamp: 1_700_000_000 })
afterAll(anvil.stop)
const allowed_methods = [
  ...['evm_chainId', 'evm_getBlockReceipts', 'evm_feeHistory', 'evm_maxPriorityFeePerGas'],
  ...['evm_blobBaseFee', 'evm_getProof', 'evm_createAccessList', 'web3_sha3'],
  ...[
    'txpool_status',
    'txpool_content',
    'debug_traceTransaction',
    'debug_traceCall',
    'trace_block',
  ],
]

const sender = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const other = '0x00000000000000000000000000000000000000ff'
const bytes32 = (digits: string): Hex => `0x${digits.padStart(64, '0')}`
const [a, b, c] = ['a', 'b', 'c'].map(bytes32) as [Hex, Hex, Hex]
const nowhere = bytes32('dead')

/** Init code that leaves this runtime code behind. */
const deploy = (runtime: string): Hex => {
  const length = (runtime.length / 2).toString(16).padStart(2, '0')
  return `0x60${length}600c60003960${length}6000f3${runtime}`
}
// Emits logs with no, one, two and three topics.
const push = (topic: Hex) => `7f${topic.slice(2)}`
const noisy = `60006000a0${push(a)}60006000a1${push(b)}${push(a)}60006000a2${push(c)}${push(b)}${push(a)}60006000a300`
// Reverts with Error("block not found").
const words = Buffer.from('block not found').toString('hex').padEnd(64, '0')
const sulky = `7f08c379a000000000000000000000000000000000000000000000000000000000600052602060045260${'0f'}6024527f${words}60445260646000fd`

type Receipt = { contractAddress: Hex }
const send = async (call: object): Promise<[hash: Hex, receipt: Receipt]> => {
  const hash = await anvil.call<Hex>('eth_sendTransaction', [{ from: sender, ...call }])
  let receipt: Receipt | null = null
  await waitFor('the transaction is mined', async () => {
    receipt = await anvil.call<Receipt | null>('eth_getTransactionReceipt', [hash])
    return receipt !== null
  })
  return [hash, receipt as unknown as Receipt]
}
const create = async (runtime: string) => (await send({ data: deploy(runtime) }))[1].contractAddress
const noise = await create(noisy)
const sulk = await create(sulky)
const mined: Hex[] = []
for (let index = 0; index < 4; index++) mined.push((await send({ to: noise }))[0])
await send({ to: other, value: '0x5' })
const head = Number(await anvil.call<string>('eth_blockNumber'))
const block = await anvil.call<{ hash: Hex }>('eth_getBlockByNumber', ['0x3', false])
const latest = `0x${head.toString(16)}`

const gateways: [string, TestGateway][] = [
  ['HTTP', await startTestGateway([anvil.url], { gateway: { allowed_methods } })],
  ['WebSocket', await startTestGateway([anvil.wsUrl], { gateway: { allowed_methods } })],
]

const bare = async (method: string, params: unknown[]): Promise<string> => {
  const response = await fetch(anvil.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await response.text()
  // The one quantity that anvil writes as a number.
  if (method !== 'eth_getTransactionReceipt') return text
  return text.replace(
    /"blockTimestamp":(\d+)/g,
    (_, seconds) => `"blockTimestamp":"0x${Number(seconds).toString(16)}"`,
  )
}

const blocks = ['0x0', '0x1', '0x3', latest, 'latest', 'earliest', 'pending', 'safe', 'finalized']
const states = [...blocks, block.hash, { blockHash: block.hash }, { blockNumber: '0x3' }]
const override = { [other]: { code: '0x602a60005260206000f3', balance: '0x5' } }
const topics = [
  [],
  [a],
  [null, b],
  [a, b],
  [
    [a, b],
    [a, b],
  ],
  [[c]],
  [a, [b, c], c],
  null,
]

/** Calls whose answers are the same. */
const same: [string, unknown[]][] = [
  ['web3_clientVersion', []],
  ['net_version', []],
  ['net_listening', []],
  ['eth_syncing', []],
  ['eth_gasPrice', []],
  ['eth_blockNumber', []],
  ['eth_chainId', []],
  ['eth_maxPriorityFeePerGas', []],
  ['eth_blobBaseFee', []],
  ['web3_sha3', ['0x1234']],
  ['txpool_status', []],
  ['txpool_content', []],
  ['eth_feeHistory', ['0x2', 'latest', [5]]],
  ['trace_block', ['0x3']],
  ['debug_traceTransaction', [mined[0], { tracer: 'callTracer' }]],
  ['debug_traceCall', [{ to: noise }, 'latest', { tracer: 'callTracer' }]],
  ...states.flatMap((state): [string, unknown[]][] => [
    ['eth_getBalance', [sender, state]],
    ['eth_getTransactionCount', [sender, state]],
    ['eth_getCode', [noise, state]],
    ['eth_getStorageAt', [noise, '0x0', state]],
    ['eth_call', [{ to: other }, state]],
    ['eth_call', [{ to: other, data: '0x12' }, state, override]],
  ]),
  ['eth_getBalance', [sender, '0xffff']],
  ['eth_getBalance', [sender, { blockHash: nowhere }]],
  ['eth_getStorageAt', [noise, bytes32('1'), 'latest']],
  ['eth_call', [{ to: other }]],
  ['eth_call', [{ to: sulk }, 'latest']],
  ['eth_call', [{ to: sulk }]],
  ['eth_call', [{ to: other }, null, override]],
  ['eth_call', [{ to: other }, 'latest', override, { number: '0x5' }]],
  ['eth_call', [{ to: other }, 'latest', {}]],
  ['eth_call', [{ from: sender, to: other, input: '0x' }, 'latest']],
  ['eth_estimateGas', [{ from: sender, to: noise }]],
  ['eth_estimateGas', [{ from: sender, to: noise }, 'latest']],
  ['eth_estimateGas', [{ from: sender, to: other }, 'latest', override]],
  ['eth_estimateGas', [{ to: sulk }]],
  ['eth_createAccessList', [{ from: sender, to: noise }, 'latest']],
  ['eth_getProof', [noise, [bytes32('0')], 'latest']],
  ...blocks
    .filter((one) => one !== 'pending')
    .flatMap((one): [string, unknown[]][] => [
      ['eth_getBlockByNumber', [one, true]],
      ['eth_getBlockByNumber', [one, false]],
      ['eth_getBlockTransactionCountByNumber', [one]],
      ['eth_getUncleCountByBlockNumber', [one]],
      ['eth_getTransactionByBlockNumberAndIndex', [one, '0x0']],
      ['eth_getTransactionByBlockNumberAndIndex', [one, '0x9']],
      ['eth_getUncleByBlockNumberAndIndex', [one, '0x0']],
      ['eth_getBlockReceipts', [one]],
    ]),
  ['eth_getBlockByNumber', ['0xffff', false]],
  ...[block.hash, nowhere].flatMap((hash): [string, unknown[]][] => [
    ['eth_getBlockByHash', [hash, true]],
    ['eth_getBlockTransactionCountByHash', [hash]],
    ['eth_getTransactionByBlockHashAndIndex', [hash, '0x0']],
    ['eth_getTransactionByHash', [hash]],
    ['eth_getTransactionReceipt', [hash]],
    ['eth_getLogs', [{ blockHash: hash }]],
    ['eth_getLogs', [{ blockHash: hash, topics: [a] }]],
  ]),
  ['eth_getTransactionByHash', [mined[1]]],
  ['eth_getTransactionReceipt', [mined[1]]],
  ...topics.flatMap((one): [string, unknown[]][] => [
    ['eth_getLogs', [{ fromBlock: '0x0', toBlock: 'latest', topics: one }]],
    ['eth_getLogs', [{ fromBlock: 'earliest', address: [noise, other], topics: one }]],
  ]),
  ['eth_getLogs', [{}]],
  ['eth_getLogs', [{ fromBlock: '0x3', toBlock: '0x3', address: noise }]],
  ['eth_getLogs', [{ fromBlock: '0x0', address: [] }]],
  ['eth_getLogs', [{ fromBlock: 'safe', toBlock: 'latest' }]],
  ['eth_getLogs', [{ fromBlock: 'finalized', toBlock: 'safe' }]],
  ['eth_getLogs', [{ fromBlock: '0x0', toBlock: 'pending' }]],
  ['eth_getLogs', [{ fromBlock: '0x0', toBlock: '0xffff' }]],
  // Ranges that are reversed, in the future, or beside a hash.
  ['eth_getLogs', [{ fromBlock: '0x5', toBlock: '0x2' }]],
  ['eth_getLogs', [{ fromBlock: 'latest', toBlock: '0x2' }]],
  ['eth_getLogs', [{ fromBlock: '0xffff' }]],
  ['eth_getLogs', [{ fromBlock: '0xffff', toBlock: '0xfffff' }]],
  ['eth_getFilterChanges', ['0x1']],
  ['eth_uninstallFilter', ['']],
  ['eth_uninstallFilter', ['0x1']],
]

describe.each(gateways)('through the gateway, on a node over %s', (transport, gateway) => {
  it('every call has the answer of the bare node, the first time and again', async () => {
    for (let round = 0; round < 2; round++)
      for (const [method, params] of same) {
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
        const { text, status } = await gateway.post(body)
        const answered = JSON.parse(text)
        // The errors of the gateway itself carry more than those of a node.
        if (answered.error?.data?.source === 'gateway') {
          const { error } = JSON.parse(await bare(method, params))
          expect({ body, code: answered.error.code, message: answered.error.message }).toEqual({
            body,
            code: error.code,
            message: error.message,
          })
        } else
          expect({ body, status, text }).toEqual({
            body,
            status: 200,
            text: await bare(method, params),
          })
      }
  })

  it.each([
    ['a number where the specification has a string', 'eth_protocolVersion', [], '0x1'],
    ['a method that the node does not have', 'net_peerCount', [], '0x0'],
    ['a block that is not found is null', 'eth_getUncleCountByBlockNumber', ['0xffff'], null],
    ['a block that is not found is null', 'eth_getUncleCountByBlockHash', [nowhere], null],
    [
      'an uncle that is not found is null',
      'eth_getUncleByBlockHashAndIndex',
      [nowhere, '0x0'],
      null,
    ],
    ['the pending block has no uncles', 'eth_getUncleCountByBlockNumber', ['pending'], '0x0'],
    ['a block that is left out is the latest', 'eth_getCode', [other], '0x'],
    ['a block that is left out is the latest', 'eth_getBalance', [other], '0x5'],
    ['a block that is left out is the latest', 'eth_getTransactionCount', [other], '0x0'],
    ['a block that is left out is the latest', 'eth_getStorageAt', [other, '0x0'], bytes32('0')],
  ])('differs: %s (%s %j)', async (_, method, params, expected) => {
    expect((await gateway.rpc(method, params)).result).toEqual(expected)
    expect(JSON.parse(await bare(method, params)).result).not.toEqual(expected)
  })

  it('differs: a filter with more positions than a log has topics does not match it', async () => {
    const count = async (one: unknown) =>
      (await gateway.rpc('eth_getLogs', [{ fromBlock: '0x0', topics: one }])).result.length
    expect(await count([])).toBe(16)
    expect(await count([null])).toBe(12)
    expect(await count([null, null])).toBe(8)
    expect(await count([a, null, []])).toBe(4)
    expect(await count([null, null, null, null])).toBe(0)
  })

  it.each([
    ['eth_getBalance', []],
    ['eth_getBalance', ['zz', 'latest']],
    ['eth_getBlockByNumber', ['newest', false]],
    ['eth_getBlockByNumber', ['latest']],
    ['eth_call', [{ to: other }, 'latest', []]],
    ['eth_getLogs', [{ blockHash: block.hash, fromBlock: '0x1' }]],
    ['web3_sha3', ['too many requests']],
    ['eth_nothing', []],
    ['eth_subscribe', []],
    ['eth_subscribe', ['newHeads']],
  ])('refuses what the node refuses, by the same code: %s %j', async (method, params) => {
    const { error } = await gateway.rpc(method, params)
    expect(error.code).toBe(JSON.parse(await bare(method, params)).error.code)
    // The feed continues: neither the node nor its cache is disabled.
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_gasPrice', params: [] })
    await gateway.post(body)
    const { headers } = await gateway.post(body)
    expect(headers['x-portolan-cache']).toBe('HIT')
  })

  it('a node over WebSocket that does not say whether the method is the reason is asked for all others', async () => {
    const { error } = await gateway.rpc('eth_call', [{ to: sulk }, 'latest'])
    expect(error).toMatchObject({ code: 3, message: expect.stringContaining('block not found') })
    expect((await gateway.rpc('net_peerCount')).result, transport).toBe('0x0')
  })

  const addressOf = () => `${gateway.base_url}/c/mainnet/v1/${gateway.tenant.member.api_key}`

  it('viem gives its users the same', async () => {
    const clientOf = (url: string) =>
      createPublicClient({
        chain: foundry,
        transport: http(url, { retryCount: 0 }),
      }) as PublicClient
    const [direct, through] = [clientOf(anvil.url), clientOf(addressOf())]
    const stateOverride = [{ address: other as Hex, code: '0x602a60005260206000f3' as Hex }]
    const actions: Record<string, (client: PublicClient) => Promise<unknown>> = {
      block: (client) => client.getBlock({ includeTransactions: true }),
      receipt: async (client) => ({
        ...(await client.getTransactionReceipt({ hash: mined[2]! })),
        blockTimestamp: 0,
      }),
      transaction: (client) => client.getTransaction({ hash: mined[2]! }),
      nonce: (client) => client.getTransactionCount({ address: sender }),
      call: (client) => client.call({ to: other as Hex, stateOverride }),
      blockOverride: (client) =>
        client.call({ to: other as Hex, stateOverride, blockOverrides: { number: 7n } }),
      estimate: (client) => client.estimateGas({ account: sender, to: noise, stateOverride }),
      fees: (client) => client.estimateFeesPerGas(),
      history: (client) => client.getFeeHistory({ blockCount: 2, rewardPercentiles: [5] }),
      logs: (client) => client.getLogs({ address: noise, fromBlock: 0n }),
      proof: (client) => client.getProof({ address: noise, storageKeys: [] }),
      filterLogs: async (client) => {
        const filter = await client.createEventFilter({ address: noise, fromBlock: 0n })
        const logs = await client.getFilterLogs({ filter })
        return [logs, await client.uninstallFilter({ filter })]
      },
      revert: (client) =>
        client.call({ to: sulk }).catch(({ name, details }) => ({ name, details })),
      unknown: (client) => client.getTransaction({ hash: nowhere }).catch(({ name }) => ({ name })),
    }
    for (const [name, act] of Object.entries(actions))
      expect([name, await act(through)]).toEqual([name, await act(direct)])
  })

  it('ethers gives its users the same', async () => {
    const providerOf = (url: string) => new JsonRpcProvider(url, undefined, { staticNetwork: true })
    const [direct, through] = [providerOf(anvil.url), providerOf(addressOf())]
    const abi: InterfaceAbi = ['function answer() view returns (uint256)']
    const actions: Record<string, (provider: JsonRpcProvider) => Promise<unknown>> = {
      block: async (one) => (await one.getBlock('latest', true))?.toJSON(),
      receipt: async (one) => (await one.getTransactionReceipt(mined[2]!))?.toJSON(),
      transaction: async (one) => (await one.getTransaction(mined[2]!))?.toJSON(),
      balance: (one) => one.getBalance(sender),
      storage: (one) => one.getStorage(noise, 0),
      fees: async (one) => (await one.getFeeData()).toJSON(),
      estimate: (one) => one.estimateGas({ from: sender, to: noise }),
      logs: (one) => one.getLogs({ address: noise, fromBlock: 0 }).then((logs) => logs.map(String)),
      revert: (one) =>
        new Contract(sulk, abi, one).answer!().catch(({ code, reason }) => ({ code, reason })),
    }
    for (const [name, act] of Object.entries(actions))
      expect([name, await act(through)]).toEqual([name, await act(direct)])
    for (const one of [direct, through]) one.destroy()
  })
})

it('a transaction that the node refuses gets its error', async () => {
  const [, gateway] = gateways[0]!
  for (const raw of ['0x02f8', '0x00']) {
    const { error } = JSON.parse(await bare('eth_sendRawTransaction', [raw]))
    expect((await gateway.rpc('eth_sendRawTransaction', [raw])).error).toEqual(error)
  }
})

it('every pending transaction is announced, however soon it is mined', async () => {
  const [, gateway] = gateways[0]!
  const { result: id } = await gateway.rpc('eth_newPendingTransactionFilter')
  const sent: string[] = []
  for (let index = 0; index < 6; index++) sent.push((await send({ to: other, value: '0x1' }))[0])
  const seen: string[] = []
  for (let left = 40; left > 0 && seen.length < sent.length; left--) {
    seen.push(...(await gateway.rpc('eth_getFilterChanges', [id])).result)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  expect(seen.toSorted()).toEqual(sent.toSorted())
})
