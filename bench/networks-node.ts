import { createServer } from 'node:http'
import { hashOfHeader } from '../src/chains/evm/codec/header-hash.ts'

// Nodes of many chains on one port: the first segment of the path is the chain id. Each chain has an empty block every
// second, with a real header hash. It prints its port, and for each request to `/counts` the calls of each chain.

const filler = `0x${'ab'.repeat(32)}`
const emptyTrie = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'
const emptyList = '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347'
const hex = (value: number): string => `0x${value.toString(16)}`

type Block = { number: string; hash: string; parentHash: string; timestamp: string }
type Call = { id: number; method: string; params: unknown[] }

const blockMs = 1_000
const chains = new Map<number, { blocks: Block[]; byHash: Map<string, Block>; calls: number }>()

const chainOf = (id: number) => {
  let chain = chains.get(id)
  if (!chain) {
    chain = { blocks: [], byHash: new Map(), calls: 0 }
    chains.set(id, chain)
    for (let count = 0; count < 100; count++) addBlock(id)
  }
  return chain
}

const addBlock = (id: number): void => {
  const { blocks, byHash } = chainOf(id)
  const number = hex(blocks.length)
  const fields = {
    number,
    parentHash: blocks.at(-1)?.hash ?? `0x${'00'.repeat(32)}`,
    nonce: '0x0000000000000000',
    sha3Uncles: emptyList,
    logsBloom: `0x${'00'.repeat(256)}`,
    transactionsRoot: emptyTrie,
    stateRoot: filler,
    receiptsRoot: emptyTrie,
    miner: `0x${'cd'.repeat(20)}`,
    difficulty: '0x0',
    extraData: hex(id).length % 2 === 0 ? hex(id) : `0x0${id.toString(16)}`,
    gasLimit: '0x1c9c380',
    gasUsed: '0x0',
    timestamp: hex(1_800_000_000 + blocks.length),
    mixHash: filler,
    baseFeePerGas: '0x7',
    uncles: [],
    transactions: [],
  }
  const block = { ...fields, hash: hashOfHeader(fields) }
  blocks.push(block)
  byHash.set(block.hash, block)
}

setInterval(() => {
  for (const id of chains.keys()) addBlock(id)
}, blockMs)

function resultOf(id: number, { method, params }: Call): unknown {
  const { blocks, byHash } = chainOf(id)
  const top = blocks.length - 1
  switch (method) {
    case 'eth_chainId':
      return hex(id)
    case 'eth_syncing':
      return false
    case 'eth_blockNumber':
      return hex(top)
    case 'web3_clientVersion':
      return 'stub/1'
    case 'eth_getBlockByNumber': {
      const tag = String(params[0])
      if (tag === 'finalized') return blocks[Math.max(0, top - 64)]
      return blocks[tag === 'latest' ? top : Number(tag)] ?? null
    }
    case 'eth_getBlockByHash':
      return byHash.get(String(params[0])) ?? null
    case 'eth_getBlockReceipts':
    case 'eth_getLogs':
      return []
    case 'eth_getBalance':
    case 'eth_getTransactionCount':
      return '0x0'
    case 'eth_getCode':
      return '0x'
    default:
      return undefined
  }
}

const answerOf = (id: number, call: Call): object => {
  chainOf(id).calls++
  const result = resultOf(id, call)
  return result === undefined
    ? { jsonrpc: '2.0', id: call.id, error: { code: -32601, message: 'method not found' } }
    : { jsonrpc: '2.0', id: call.id, result }
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    if (request.url === '/counts') {
      const counts = [...chains].map(([id, { calls }]) => [id, calls])
      return response.end(JSON.stringify(Object.fromEntries(counts)))
    }
    const id = Number(request.url?.slice(1))
    const body: Call | Call[] = JSON.parse(Buffer.concat(chunks).toString())
    const answer = Array.isArray(body) ? body.map((call) => answerOf(id, call)) : answerOf(id, body)
    response.setHeader('content-type', 'application/json')
    return response.end(JSON.stringify(answer))
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
