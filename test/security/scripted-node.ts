// A light EVM node for the noisy-neighbour program: real blocks with proofs and signed transactions, made by a script
// each second. It executes nothing, so that a figure shows the service and not an emulated node. A POST to `/fund` puts
// a payment into the next block, one to `/collect` collects garbage. It prints its port.

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fromPublicKey } from 'ox/Address'
import { getPublicKey, sign } from 'ox/Secp256k1'
import { bloomOf } from '../../src/chains/evm/codec/bloom.ts'
import { hashOfHeader } from '../../src/chains/evm/codec/header-hash.ts'
import { signedTransaction, signingHash } from '../../src/chains/evm/codec/legacy-transaction.ts'
import {
  bytesOf,
  type RawLog,
  type RawReceipt,
  toQuantity,
} from '../../src/chains/evm/codec/raw.ts'
import { encodeReceipt } from '../../src/chains/evm/codec/receipts.ts'
import { transferTopic } from '../../src/chains/evm/codec/topics.ts'
import { encodeTransaction } from '../../src/chains/evm/codec/transactions.ts'
import { listRoot } from '../../src/chains/evm/codec/trie.ts'
import { addressOf, wordOf } from '../../src/chains/evm/testing/stub-chain.ts'

const chain_id = 31_337n
const blockMs = 1_000
const firstBlocks = 64
const logsEach = 8
const contracts = 4
const longBytes = 65_536
const gas = 30_000n
const gas_price = 1_000_000_000n
const privateKey = `0x${'2b'.repeat(32)}` as const
const faucet = fromPublicKey(getPublicKey({ privateKey })).toLowerCase()
const emptyList = '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347'

type Payment = { to: string; value: bigint; hasLogs: boolean }
type Sent = NonNullable<Parameters<typeof encodeTransaction>[0]> & Record<string, unknown>
type Block = {
  number: number
  header: Record<string, unknown>
  sent: Sent[]
  receipts: object[]
  /** Each log with its text: writing thousands of them for one answer would take the core from the database. */
  logs: { log: RawLog; text: string }[]
  /** The texts of all, for answers that have whole blocks: other calls would wait for 5 ms while thousands are joined. */
  bytes: Buffer
  /** Answer the calls of `/fund` whose payments it has. */
  funded: (() => void)[]
}
type Call = { id: number; method: string; params: readonly unknown[] }

const blocks: Block[] = []
const byHash = new Map<string, Block>()
const blockOfTransaction = new Map<string, Block>()
const balances = new Map<string, { from: number; balance: bigint }[]>()
let waiting: { sent: Sent; hasLogs: boolean }[] = []
let funded: (() => void)[] = []
let nonce = 0

/** Signs a payment of the faucet for the next block; its hash. */
const pay = ({ to, value, hasLogs }: Payment): string => {
  const fields = {
    ...{ nonce, gas_price, gas, value, chain_id, from: bytesOf(faucet) },
    ...{ to: bytesOf(to), data: Buffer.alloc(0) },
  }
  const payload = `0x${signingHash(fields).toString('hex')}` as const
  const { r, s, yParity } = sign({ payload, privateKey })
  const parity = yParity as 0 | 1
  const hash = `0x${signedTransaction(fields, { r, s, parity }).hash.toString('hex')}`
  const sent = {
    ...{ type: '0x0', hash, from: faucet, to, value: toQuantity(value), input: '0x' },
    ...{ nonce: toQuantity(nonce), gas: toQuantity(gas), gasPrice: toQuantity(gas_price) },
    v: toQuantity(chain_id * 2n + 35n + BigInt(parity)),
    ...{ chainId: toQuantity(chain_id), r: toQuantity(r), s: toQuantity(s) },
  }
  nonce++
  waiting.push({ sent, hasLogs })
  return hash
}

const balanceAt = (address: string, number: number): bigint =>
  balances.get(address)?.findLast(({ from }) => from <= number)?.balance ?? 0n

const logsOf = (number: number): RawLog[] =>
  Array.from({ length: logsEach }, (_, index) => ({
    address: addressOf(0xc0de + (index % contracts)),
    topics: [transferTopic, wordOf(addressOf(0xaa00 + index)), wordOf(addressOf(0xbb00 + number))],
    data: wordOf(number * 1_000 + index),
  }))

function addBlock(timestamp: number): void {
  const number = blocks.length
  pay({ to: addressOf(0xc0de), value: 0n, hasLogs: true })
  const chosen = waiting
  waiting = []
  let logIndex = 0
  const receipts = chosen.map(({ sent, hasLogs }, index) => {
    const logs = hasLogs ? logsOf(number) : []
    return {
      ...{ transactionHash: sent.hash, blockHash: '', type: '0x0', status: '0x1', logs },
      ...{ transactionIndex: toQuantity(index), blockNumber: toQuantity(number) },
      ...{ from: sent.from, to: sent.to, contractAddress: null },
      cumulativeGasUsed: toQuantity(gas * BigInt(index + 1)),
      ...{ gasUsed: toQuantity(gas), effectiveGasPrice: toQuantity(gas_price) },
      logsBloom: `0x${bloomOf(logs).toString('hex')}`,
    }
  })
  const fields = {
    parentHash: String(blocks.at(-1)?.header.hash ?? wordOf(0)),
    ...{ sha3Uncles: emptyList, miner: addressOf(0xfee), stateRoot: wordOf(2) },
    transactionsRoot: listRoot(chosen.map(({ sent }) => encodeTransaction(sent)!)),
    receiptsRoot: listRoot(receipts.map((one) => encodeReceipt(one as RawReceipt))),
    logsBloom: `0x${bloomOf(receipts.flatMap(({ logs }) => logs)).toString('hex')}`,
    ...{ difficulty: '0x0', number: toQuantity(number), gasLimit: toQuantity(30_000_000) },
    gasUsed: toQuantity(gas * BigInt(chosen.length)),
    ...{ timestamp: toQuantity(timestamp), extraData: '0x', mixHash: wordOf(3) },
    ...{ nonce: '0x0000000000000000', baseFeePerGas: '0x7' },
  }
  const hash = hashOfHeader(fields)
  const place = { blockHash: hash, blockNumber: toQuantity(number) }
  const shown = receipts.map((receipt) => ({
    ...{ ...receipt, ...place },
    logs: receipt.logs.map((log) => ({
      ...{ ...log, ...place, transactionHash: receipt.transactionHash, removed: false },
      ...{ transactionIndex: receipt.transactionIndex, logIndex: toQuantity(logIndex++) },
    })),
  }))
  const logs = shown.flatMap((receipt) =>
    receipt.logs.map((log) => ({ log, text: JSON.stringify(log) })),
  )
  const block: Block = {
    ...{ number, funded, receipts: shown, logs },
    bytes: Buffer.from(logs.map(({ text }) => `,${text}`).join('')),
    header: { ...fields, hash, uncles: [], size: '0x400', totalDifficulty: '0x0' },
    sent: chosen.map(({ sent }, index) => ({
      ...{ ...sent, ...place, transactionIndex: toQuantity(index) },
    })),
  }
  for (const { hash: id, to, value } of block.sent) {
    blockOfTransaction.set(id, block)
    const before = balanceAt(to!, number)
    const steps = balances.get(to!) ?? []
    balances.set(to!, [...steps, { from: number, balance: before + BigInt(value) }])
  }
  funded = []
  blocks.push(block)
  byHash.set(hash, block)
}

const numberOf = (tag: unknown): number => {
  const top = blocks.length - 1
  if (tag === 'earliest') return 0
  if (tag === 'finalized' || tag === 'safe') return Math.max(0, top - 32)
  return typeof tag === 'string' && tag.startsWith('0x') ? Number(tag) : top
}

const show = (block: Block | undefined, isFull: unknown): object | null => {
  if (!block) return null
  for (const answer of block.funded) answer()
  block.funded = []
  return { ...block.header, transactions: isFull ? block.sent : block.sent.map(({ hash }) => hash) }
}

type Filter = { fromBlock?: string; toBlock?: string; blockHash?: string } & {
  address?: string | string[]
  topics?: (string | string[] | null)[]
}

/** The answer with all logs of a range. */
const wholeLogs = ({ id, params }: Call): Buffer => {
  const { fromBlock = 'latest', toBlock = 'latest' } = params[0] as Filter
  const found = blocks.slice(numberOf(fromBlock), numberOf(toBlock) + 1).map(({ bytes }) => bytes)
  const first = found.findIndex(({ length }) => length > 0)
  // Each text begins with a comma.
  if (first >= 0) found[first] = found[first]!.subarray(1)
  return Buffer.concat([
    Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":[`),
    ...found,
    Buffer.from(']}'),
  ])
}

/** The list of them as JSON. */
const logsFor = (filter: Filter): string => {
  const { blockHash, fromBlock = 'latest', toBlock = 'latest', address, topics = [] } = filter
  const chosen = blockHash
    ? [byHash.get(blockHash)].filter((one) => one !== undefined)
    : blocks.slice(numberOf(fromBlock), numberOf(toBlock) + 1)
  const wanted = address === undefined ? undefined : new Set([address].flat())
  const fits = (log: RawLog) =>
    (wanted === undefined || wanted.has(log.address)) &&
    topics.every((topic, at) => topic === null || [topic].flat().includes(log.topics[at]!))
  const found = chosen.flatMap(({ logs }) => logs.filter(({ log }) => fits(log)))
  return `[${found.map(({ text }) => text)}]`
}

function resultOf({ method, params }: Call): unknown {
  const [first, second] = params
  switch (method) {
    case 'eth_chainId':
      return toQuantity(chain_id)
    case 'net_version':
      return `${chain_id}`
    case 'web3_clientVersion':
      return 'scripted/1'
    case 'eth_syncing':
      return false
    case 'eth_blockNumber':
      return toQuantity(blocks.length - 1)
    case 'eth_getBlockByNumber':
      return show(blocks[numberOf(first)], second)
    case 'eth_getBlockByHash':
      return show(byHash.get(String(first)), second)
    case 'eth_getBlockReceipts': {
      const found =
        String(first).length === 66 ? byHash.get(String(first)) : blocks[numberOf(first)]
      return found?.receipts ?? null
    }
    case 'eth_getTransactionReceipt':
    case 'eth_getTransactionByHash': {
      const block = blockOfTransaction.get(String(first))
      const index = block?.sent.findIndex(({ hash }) => hash === first) ?? 0
      return (method.endsWith('Receipt') ? block?.receipts : block?.sent)?.[index] ?? null
    }
    case 'eth_getBalance':
      return toQuantity(balanceAt(String(first), numberOf(second)))
    case 'eth_getTransactionCount':
      return first === faucet ? toQuantity(nonce) : '0x0'
    case 'eth_gasPrice':
      return toQuantity(gas_price)
    case 'eth_estimateGas':
      return '0x5208'
    case 'eth_getCode':
    case 'eth_call':
      return '0x'
    default:
      return undefined
  }
}

const answerOf = (call: Call): string => {
  if (call.method === 'eth_getLogs')
    return `{"jsonrpc":"2.0","id":${call.id},"result":${logsFor(call.params[0] as Filter)}}`
  const result = resultOf(call)
  return JSON.stringify(
    result === undefined
      ? { jsonrpc: '2.0', id: call.id, error: { code: -32601, message: 'method not found' } }
      : { jsonrpc: '2.0', id: call.id, result },
  )
}

/** The call of a long body by its beginning, without parameters. */
const shortened = (start: Buffer): string => {
  const head = start.toString('latin1', 0, 1_000)
  const id = Number(/"id":(\d{1,15})/.exec(head)?.[1] ?? 0)
  const method = /"method":"(\w{1,50})"/.exec(head)?.[1] ?? ''
  return JSON.stringify({ jsonrpc: '2.0', id, method, params: [] })
}

const reply = (response: ServerResponse, url: string | undefined, text: string): void => {
  const body = JSON.parse(text)
  const send = (answer: string | Buffer) => {
    response.setHeader('content-type', 'application/json')
    response.end(answer)
  }
  if (url === '/collect') {
    globalThis.gc?.()
    send('{}')
    return
  }
  if (url !== '/fund') {
    const { blockHash, address, topics } = body.method === 'eth_getLogs' ? body.params[0] : {}
    if (body.method === 'eth_getLogs' && !blockHash && !address && !topics) send(wholeLogs(body))
    else send(Array.isArray(body) ? `[${body.map(answerOf)}]` : answerOf(body))
    return
  }
  const value = BigInt(body.amount)
  const transaction_hash = pay({ to: body.address, value, hasLogs: false })
  // Answered when the service reads the block: a transfer is measured from there, not from a moment between two polls.
  funded.push(() => send(JSON.stringify({ transaction_hash })))
}

const start = Math.floor(Date.now() / 1_000) - firstBlocks
for (let index = 0; index < firstBlocks; index++) addBlock(start + index)
setInterval(() => {
  const last = Number(blocks.at(-1)!.header.timestamp)
  addBlock(Math.max(last + 1, Math.floor(Date.now() / 1_000)))
}, blockMs)

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const size = chunks.reduce((sum, { length }) => sum + length, 0)
    // Reading megabytes would take the core from the database, which is what a figure is about.
    if (size > longBytes) reply(response, request.url, shortened(chunks[0]!))
    else reply(response, request.url, Buffer.concat(chunks).toString())
  })
})
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
