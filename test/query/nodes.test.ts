import { describe, expect, it } from 'vitest'
import { type StubCall, startStubNode, stubHash } from '../gateway/stub-node.ts'
import { startTestApp } from '../helpers/app.ts'
import { startMethodProxy } from './method-proxy.ts'
import { startQueryApp } from './query-app.ts'

// What no local node shows: numbers beyond 2^53 in headers, odd answers, unreachable nodes.

const hash = (number: number) => `0x${number.toString(16).padStart(64, '0')}`
const transactionOf = (transaction_hash: unknown) => ({
  ...{ hash: transaction_hash, from: `0x${'1'.repeat(40)}`, to: `0x${'2'.repeat(40)}` },
  ...{ gas: '0x5208', gasPrice: '0x1', input: '0x', nonce: '0x7', value: '0x0', type: '0x0' },
  ...{ r: '0x1', s: '0x2', v: '0x1b' },
  ...{ blockHash: stubHash(10), blockNumber: '0xa', transactionIndex: '0x0' },
})
const blockOf = (number: number) => ({
  ...{
    number: `0x${number.toString(16)}`,
    hash: stubHash(number),
    parentHash: stubHash(number - 1),
  },
  ...{ difficulty: '0x2386f26fc10001', extraData: '0x', gasLimit: '0x1c9c380', gasUsed: '0x0' },
  ...{ logsBloom: `0x${'00'.repeat(256)}`, miner: `0x${'c'.repeat(40)}`, receiptsRoot: hash(1) },
  ...{ sha3Uncles: hash(2), size: '0x220', stateRoot: hash(3), timestamp: '0x6553f100' },
  ...{ transactionsRoot: hash(4), transactions: [] },
})

const startNode = async () => {
  const node = await startStubNode()
  const odd = new Map<string, unknown>()
  node.answer = ({ method, params }: StubCall) => {
    if (odd.has(method)) return { result: JSON.stringify(odd.get(method)) }
    if (method === 'eth_getBalance') return { result: '"0x0"' }
    if (method === 'eth_getTransactionByHash')
      return { result: JSON.stringify(transactionOf(params[0])) }
    if (method === 'eth_getBlockByNumber' && params[0] !== 'latest')
      return { result: JSON.stringify(blockOf(Number(params[0]))) }
    return undefined
  }
  return { node, odd }
}

describe('with one node', async () => {
  const { node, odd } = await startNode()
  const proxy = await startMethodProxy(node.url)
  const app = await startQueryApp([proxy.url])

  it('a difficulty beyond 2^53 is a JSON integer without loss', async () => {
    const { text } = await app.query('GetBlock', { block_number: 7 })
    expect(text).toContain('"difficulty":10000000000000001,')
  })

  it('100 transactions are one batch to the node', async () => {
    const transaction_hashes = Array.from({ length: 100 }, (_, index) => hash(index + 1))
    proxy.exchanges.length = 0
    const { json } = await app.query('ListTransactions', { transaction_hashes })
    expect(
      json.transactions.map((one: { transaction_hash: string }) => one.transaction_hash),
    ).toEqual(transaction_hashes)
    const asked = proxy.exchanges.filter((methods) => methods.includes('eth_getTransactionByHash'))
    expect(asked).toEqual([Array(100).fill('eth_getTransactionByHash')])
  })

  it('what is final comes from the cache, one by one and together', async () => {
    const transaction_hash = hash(1)
    const first = await app.query('GetTransaction', { transaction_hash })
    proxy.exchanges.length = 0
    const again = await app.query('GetTransaction', { transaction_hash })
    expect(again.text).toBe(first.text)
    const transaction_hashes = [hash(1), hash(2)]
    await app.query('ListTransactions', { transaction_hashes })
    expect(proxy.exchanges.flat()).not.toContain('eth_getTransactionByHash')
  })

  it.each([
    ['is no object', 'eth_getTransactionByHash', 'GetTransaction', 7],
    [
      'lacks a member',
      'eth_getTransactionByHash',
      'GetTransaction',
      { hash: hash(900), blockHash: stubHash(10) },
    ],
    [
      'has a wrong member',
      'eth_getTransactionReceipt',
      'ListLogs',
      { transactionHash: hash(900), blockHash: stubHash(9) },
    ],
    [
      'is of another transaction',
      'eth_getTransactionByHash',
      'GetTransaction',
      transactionOf(hash(901)),
    ],
  ])('an answer that %s is a trouble of the node', async (_, method, operation, answer) => {
    odd.set(method, answer)
    const { status, json } = await app.query(operation, { transaction_hash: hash(900) })
    odd.delete(method)
    expect({ status, reason: json.reason }).toEqual({
      status: 503,
      reason: 'UPSTREAM_UNAVAILABLE',
    })
  })

  it('an unreachable node is 503 with the time to wait; cached answers are served', async () => {
    await app.query('GetBlock', { block_number: 8 })
    await node.stop()
    const { status, json, headers } = await app.query('GetBlock', { block_number: 9 })
    expect({ status, reason: json.reason }).toEqual({
      status: 503,
      reason: 'UPSTREAM_UNAVAILABLE',
    })
    expect(headers['retry-after']).toBe('1')
    expect((await app.query('GetBlock', { block_number: 8 })).status).toBe(200)
  })
})

it('without a query chain every operation reports it', async () => {
  const app = await startTestApp()
  const { member } = await app.createTenant()
  for (const [operation, body] of Object.entries({
    GetBlock: { block_number: 1 },
    GetPendingTransaction: { transaction_hash: hash(1) },
    GetTransaction: { transaction_hash: hash(1) },
    GetTransactionReceipt: { transaction_hash: hash(1) },
    ListInternalTransactions: { transaction_hash: hash(1) },
    ListLogs: { transaction_hash: hash(1) },
    ListPendingTransactions: { from: `0x${'1'.repeat(40)}` },
    ListTransactions: { transaction_hashes: [hash(1)] },
  })) {
    const { status, json } = await app.call(member, `q/${operation}`, body)
    expect([operation, status, json.reason]).toEqual([operation, 503, 'CHAIN_NOT_CONFIGURED'])
  }
})
