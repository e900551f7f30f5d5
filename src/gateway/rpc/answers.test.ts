import { describe, expect, it } from 'vitest'
import type { RpcReply } from '../../chains/evm/pool/pool-types.ts'
import { answerFixes } from './answers.ts'

const hash = `0x${'ab'.repeat(32)}`
const zero = `0x${'0'.repeat(64)}`
const result = (value: unknown): RpcReply => ({ ok: true, result: JSON.stringify(value) })
const error = (code: number, message: string): RpcReply => ({
  ok: false,
  error: JSON.stringify({ code, message }),
})
const fix = (name: string, reply: RpcReply, args: unknown[] = []) => {
  const fixed = answerFixes[name]?.(reply, args) ?? reply
  return fixed.ok ? JSON.parse(fixed.result) : { error: JSON.parse(fixed.error) }
}

describe('answers made right', () => {
  it('net_peerCount: 0x0 where the node has none', () => {
    expect(fix('net_peerCount', error(-32601, 'Method not found'))).toBe('0x0')
    expect(fix('net_peerCount', result('0x5'))).toBe('0x5')
    expect(fix('net_peerCount', result(12))).toBe('0xc')
    expect(fix('net_peerCount', error(-32000, 'busy'))).toEqual({
      error: { code: -32000, message: 'busy' },
    })
  })

  it('protocolVersion and net_version: always a string', () => {
    expect(fix('evm_protocolVersion', result(65))).toBe('0x41')
    expect(fix('evm_protocolVersion', result('0x3f'))).toBe('0x3f')
    expect(fix('net_version', result(1))).toBe('1')
  })

  it.each([
    'evm_getBalance',
    'evm_gasPrice',
    'evm_blockNumber',
    'evm_getTransactionCount',
    'evm_estimateGas',
    'evm_getUncleCountByBlockHash',
  ])('%s: a minimal quantity', (name) => {
    expect(fix(name, result('0x01'))).toBe('0x1')
    expect(fix(name, result('0x0000'))).toBe('0x0')
    expect(fix(name, result('0xAB'))).toBe('0xab')
    expect(fix(name, result(255))).toBe('0xff')
    expect(fix(name, result('0x0'))).toBe('0x0')
  })

  it('getStorageAt: 32 bytes; getCode: even digits', () => {
    expect(fix('evm_getStorageAt', result('0x0'))).toBe(zero)
    expect(fix('evm_getStorageAt', result(hash))).toBe(hash)
    expect(fix('evm_getCode', result('0x0'))).toBe('0x')
    expect(fix('evm_getCode', result('0x6001'))).toBe('0x6001')
  })

  const block = {
    number: '0x10',
    hash,
    nonce: '0x0000000000000042',
    logsBloom: '0x00',
    size: '0x220',
    miner: `0x${'0'.repeat(40)}`,
    transactions: [{ hash, blockHash: hash, blockNumber: '0x10', transactionIndex: '0x0' }],
  }

  it('the pending block: hash, logsBloom, nonce and number are null, and so are the places of its transactions', () => {
    const pending = fix('evm_getBlockByNumber', result(block), ['pending', true])
    expect(pending).toEqual({
      ...block,
      hash: null,
      logsBloom: null,
      nonce: null,
      number: null,
      transactions: [{ hash, blockHash: null, blockNumber: null, transactionIndex: null }],
    })
    const hashes = { ...block, transactions: [hash] }
    expect(fix('evm_getBlockByNumber', result(hashes), ['pending', false]).transactions).toEqual([
      hash,
    ])
  })

  it('a block in the chain keeps its bytes', () => {
    const reply = result(block)
    expect(answerFixes.evm_getBlockByNumber!(reply, ['latest', true])).toBe(reply)
    expect(answerFixes.evm_getBlockByHash!(reply, [hash, true])).toBe(reply)
  })

  it('a pending transaction: blockHash, blockNumber and transactionIndex are null', () => {
    const nowhere = { blockHash: null, blockNumber: null, transactionIndex: null }
    for (const odd of [
      { blockHash: zero, blockNumber: '0x0', transactionIndex: '0x0' },
      { blockHash: null, blockNumber: null, transactionIndex: '0x0' },
      nowhere,
    ])
      expect(fix('evm_getTransactionByHash', result({ hash, ...odd }))).toEqual({
        hash,
        ...nowhere,
      })
    const mined = result({ hash, blockHash: hash, blockNumber: '0x1', transactionIndex: '0x0' })
    expect(answerFixes.evm_getTransactionByHash!(mined, [hash])).toBe(mined)
    expect(fix('evm_getTransactionByBlockNumberAndIndex', mined, ['pending', '0x0'])).toMatchObject(
      nowhere,
    )
  })

  it('transactions: quantities without leading zeros, in lower case', () => {
    const odd = {
      type: '0x7E',
      r: zero,
      s: `0x00${'1'.repeat(62)}`,
      v: '0x01',
      value: '0x00',
      nonce: '0x1',
    }
    expect(fix('evm_getTransactionByHash', result({ ...odd, blockHash: hash }))).toEqual({
      type: '0x7e',
      r: '0x0',
      s: `0x${'1'.repeat(62)}`,
      v: '0x1',
      value: '0x0',
      nonce: '0x1',
      blockHash: hash,
    })
  })

  it('receipts: contractAddress is null unless there is one, numbers are quantities', () => {
    const receipt = { status: '0x1', blockNumber: '0x5', logs: [] as unknown[] }
    expect(fix('evm_getTransactionReceipt', result(receipt)).contractAddress).toBeNull()
    const noParty = { ...receipt, contractAddress: `0x${'0'.repeat(40)}` }
    expect(fix('evm_getTransactionReceipt', result(noParty)).contractAddress).toBeNull()
    const made = result({ ...receipt, contractAddress: `0x${'a'.repeat(40)}` })
    expect(answerFixes.evm_getTransactionReceipt!(made, [])).toBe(made)
    const odd = { ...receipt, status: 1, blockTimestamp: 1700000000, type: '0x7E' }
    expect(fix('evm_getTransactionReceipt', result(odd))).toMatchObject({
      status: '0x1',
      blockTimestamp: '0x6553f100',
      type: '0x7e',
    })
  })

  it('touches no text inside of strings', () => {
    const trap = { blockHash: hash, input: '"gas":"0x01" "type":"0x7E" "value":5,' }
    expect(fix('evm_getTransactionByHash', result(trap))).toEqual(trap)
  })

  it.each([
    ['evm_getBlockByNumber', -32000, 'header not found'],
    ['evm_getBlockByHash', -32000, 'unknown block'],
    [
      'evm_getBlockTransactionCountByNumber',
      -32602,
      'BlockOutOfRangeError: block height is 5 but requested was 9',
    ],
    ['evm_getUncleCountByBlockNumber', -32001, 'block not found: 0x9'],
    ['evm_getUncleByBlockHashAndIndex', -32001, 'Block not found'],
    ['evm_getUncleByBlockHashAndIndex', -32001, 'Resource not found'],
    ['evm_getTransactionByBlockNumberAndIndex', -32000, 'block does not exist'],
  ])('%s: null where nothing is found (%i %s)', (name, code, message) => {
    expect(fix(name, error(code, message))).toBeNull()
    expect(fix(name, error(-32000, 'overloaded'))).toEqual({
      error: { code: -32000, message: 'overloaded' },
    })
  })

  it('getLogs: an error is never an empty list', () => {
    for (const [code, message] of [
      [-32602, 'BlockOutOfRangeError: block height is 5 but requested was 9'],
      [-32000, 'header not found'],
      [-32000, 'unknown block'],
      [-32000, 'missing block data'],
      [-32602, 'block range extends beyond current head block'],
    ] as const)
      expect(fix('evm_getLogs', error(code, message))).toEqual({ error: { code, message } })
  })

  it('getUncleCountByBlockNumber: the pending block has no uncles', () => {
    const name = 'evm_getUncleCountByBlockNumber'
    expect(fix(name, error(-32001, 'Resource not found'), ['pending'])).toBe('0x0')
    expect(fix(name, { ok: true, result: 'null' }, ['pending'])).toBe('0x0')
    expect(fix(name, { ok: true, result: 'null' }, ['0x1'])).toBeNull()
    expect(fix(name, error(-32000, 'overloaded'), ['pending'])).toEqual({
      error: { code: -32000, message: 'overloaded' },
    })
  })

  it('syncing: the three fields of the table are always there', () => {
    const whole = result({ startingBlock: '0x1', currentBlock: '0x2', highestBlock: '0x3' })
    expect(answerFixes.evm_syncing!(whole, [])).toBe(whole)
    expect(fix('evm_syncing', result(false))).toBe(false)
    expect(
      fix('evm_syncing', result({ currentBlock: '0x2', highestBlock: '0x3', stages: [] })),
    ).toEqual({
      startingBlock: '0x0',
      currentBlock: '0x2',
      highestBlock: '0x3',
      stages: [],
    })
  })

  it('leaves null alone', () => {
    for (const [name, one] of Object.entries(answerFixes)) {
      const reply: RpcReply = { ok: true, result: 'null' }
      expect(one(reply, ['latest']), name).toBe(reply)
    }
  })
})
