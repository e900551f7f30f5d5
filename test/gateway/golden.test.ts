import { describe, expect, it } from 'vitest'
import { startTestGateway } from './gateway.ts'
import { startStubNode, stubHash } from './stub-node.ts'

// Answers as nodes gave them, odd spacing and all: not a byte of them may change on the way through.
const hash = stubHash(1000)
const old = stubHash(10)
const address = '0x00000000000000000000000000000000000000Aa'
const recorded: [
  method: string,
  params: unknown[],
  answer: { result: string } | { error: string },
][] = [
  ['web3_clientVersion', [], { result: '"Geth/v1.16.0-é\\u00e9/linux"' }],
  ['net_listening', [], { result: 'true' }],
  ['net_peerCount', [], { result: '"0x19"' }],
  ['eth_protocolVersion', [], { result: '"0x44"' }],
  ['eth_syncing', [], { result: 'false' }],
  ['eth_gasPrice', [], { result: '"0x3b9aca00"' }],
  ['eth_getBalance', [address, 'latest'], { result: '"0xde0b6b3a7640000"' }],
  ['eth_getBalance', [address, '0xa'], { result: '"0x0"' }],
  ['eth_getStorageAt', [address, '0x0', 'latest'], { result: `"${old}"` }],
  ['eth_getTransactionCount', [address, 'pending'], { result: '"0x7"' }],
  ['eth_getCode', [address, 'earliest'], { result: '"0x"' }],
  ['eth_call', [{ to: address, data: '0x06fdde03' }, 'latest'], { result: '"0xABcd"' }],
  [
    'eth_call',
    [{ to: address }],
    { error: '{"code":3, "message":"execution reverted: é","data":"0x08c379a0"}' },
  ],
  [
    'eth_estimateGas',
    [{ to: address }],
    { error: '{"code":-32000,"message":"gas required exceeds allowance (0)"}' },
  ],
  [
    'eth_getBlockByHash',
    [old, true],
    { result: `{"number":"0xa" , "hash":"${old}","transactions":[],"uncles":[]}` },
  ],
  [
    'eth_getBlockByNumber',
    ['0xa', false],
    {
      result: `{ "number":"0xa","hash": "${old}","difficulty":"0x20000","nonce":"0x0000000000000001"}`,
    },
  ],
  ['eth_getBlockByNumber', ['0xffffff', false], { result: 'null' }],
  ['eth_getBlockTransactionCountByHash', [hash], { result: '"0x0"' }],
  ['eth_getBlockTransactionCountByNumber', ['latest'], { result: '"0x10"' }],
  ['eth_getUncleCountByBlockHash', [hash], { result: '"0x0"' }],
  ['eth_getUncleCountByBlockNumber', ['0x1'], { result: '"0x2"' }],
  [
    'eth_getTransactionByHash',
    [old],
    {
      result: `{"hash":"${old}","blockHash":"${old}","blockNumber":"0xa","transactionIndex":"0x0","to":null,"v":"0x1b"}`,
    },
  ],
  ['eth_getTransactionByHash', [hash], { result: 'null' }],
  ['eth_getTransactionByBlockHashAndIndex', [old, '0x0'], { result: 'null' }],
  ['eth_getTransactionByBlockNumberAndIndex', ['0xa', '0x1'], { result: 'null' }],
  [
    'eth_getTransactionReceipt',
    [old],
    {
      result: `{"transactionHash":"${old}","blockHash":"${old}","blockNumber":"0xa","contractAddress":null,"logs":[],"status":"0x1"}`,
    },
  ],
  ['eth_getUncleByBlockHashAndIndex', [old, '0x0'], { result: 'null' }],
  ['eth_getUncleByBlockNumberAndIndex', ['0xa', '0x0'], { result: 'null' }],
  [
    'eth_getLogs',
    [{ fromBlock: '0x1', toBlock: '0x2' }],
    { result: '[ {"address":"0x1","data":"0x","logIndex":"0x0"} ]' },
  ],
  ['eth_chainId', [], { result: '"0x1"' }],
  [
    'eth_feeHistory',
    ['0x1', 'latest', [5]],
    { result: '{"oldestBlock":"0x1","baseFeePerGas":["0x7"],"gasUsedRatio":[0.5123456789012345]}' },
  ],
]
const numberOf = (block: unknown) => (block === '0x3e8' ? 'latest' : block)
const keyOf = (method: string, params: unknown[]) =>
  `${method}${JSON.stringify(params.map(numberOf))}`
const answers = new Map(recorded.map(([method, params, answer]) => [keyOf(method, params), answer]))

const node = await startStubNode()
node.answer = ({ method, params }) => {
  const call =
    method === 'eth_call' && params[1] === '0x3e8' && answers.get(keyOf(method, [params[0]]))
  return answers.get(keyOf(method, params)) ?? (call || undefined)
}

describe.each([
  ['with the cache', 67_108_864],
  ['without a cache', 0],
])('%s', (_name, cache_bytes) => {
  const texts = recorded.map(([method, params, answer], index) => {
    const evm = index % 2 ? method.replace('eth_', 'evm_') : method
    const [name, text] = 'result' in answer ? ['result', answer.result] : ['error', answer.error]
    return {
      body: JSON.stringify({ jsonrpc: '2.0', id: index, method: evm, params }),
      expected: `{"jsonrpc":"2.0","id":${index},"${name}":${text}}`,
    }
  })

  it('every answer comes through byte for byte, alone and in a batch, the first time and again', async () => {
    const gateway = await startTestGateway([node.url], { gateway: { cache_bytes } })
    for (let round = 0; round < 2; round++)
      for (const { body, expected } of texts) {
        const { status, text } = await gateway.post(body)
        expect({ status, text }).toEqual({ status: 200, text: expected })
      }
    const { text } = await gateway.post(`[${texts.map(({ body }) => body).join(',')}]`)
    expect(text).toBe(`[${texts.map(({ expected }) => expected).join(',')}]`)
  })
})

it('sends transactions to the nodes and their errors back', async () => {
  const gateway = await startTestGateway([node.url])
  const known = node.answer
  node.answer = (call) =>
    call.method === 'eth_sendRawTransaction'
      ? { error: '{"code":-32000,"message":"insufficient funds for gas * price + value"}' }
      : known(call)
  const { error } = await gateway.rpc('evm_sendRawTransaction', ['0x02f8'])
  expect(error).toEqual({ code: -32000, message: 'insufficient funds for gas * price + value' })
})
