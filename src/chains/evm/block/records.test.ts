import { describe, expect, it } from 'vitest'
import {
  lacksPrice,
  toBlock,
  toLogs,
  toPendingTransaction,
  toReceipt,
  toTransaction,
} from './records.ts'

const hash = (digit: string) => `0x${digit.repeat(64)}`
const address = (digit: string) => `0x${digit.repeat(40)}`
const placed = { blockHash: hash('b'), blockNumber: '0x10', transactionIndex: '0x2' }
const written = (value: unknown) => JSON.stringify(value)

const block = {
  hash: hash('B'),
  parentHash: hash('a'),
  number: '0x10',
  difficulty: '0x20000000000001',
  extraData: '0x',
  gasLimit: '0x1c9c380',
  gasUsed: '0x0',
  logsBloom: `0x${'00'.repeat(256)}`,
  miner: address('C'),
  receiptsRoot: hash('1'),
  sha3Uncles: hash('2'),
  size: '0x220',
  stateRoot: hash('3'),
  timestamp: '0x6553f100',
  transactionsRoot: hash('4'),
}

describe('a block', () => {
  it('that lacks what is left of proof of work has zeros there, and no uncles', () => {
    expect(toBlock(block)).toMatchObject({
      nonce: '0x0000000000000000',
      mix_hash: `0x${'00'.repeat(32)}`,
      uncles: [],
    })
    expect(toBlock({ ...block, nonce: null, mixHash: null, difficulty: null })).toMatchObject({
      nonce: '0x0000000000000000',
      mix_hash: `0x${'00'.repeat(32)}`,
      difficulty: 0,
    })
  })

  it('keeps a difficulty beyond 2^53', () => {
    expect(written(toBlock(block))).toContain('"difficulty":9007199254740993,')
    const whole = { ...block, difficulty: `0x${'f'.repeat(64)}` }
    expect(written(toBlock(whole))).toContain(`"difficulty":${2n ** 256n - 1n},`)
  })

  it('has its hashes and addresses in lower case, and its uncles', () => {
    const { block_hash, miner, uncles } = toBlock({ ...block, uncles: [hash('D')] })
    expect({ block_hash, miner, uncles }).toEqual({
      block_hash: hash('b'),
      miner: address('c'),
      uncles: [hash('d')],
    })
  })

  it.each([{ hash: null }, { number: 'latest' }, { gasUsed: undefined }, { uncles: 'none' }])(
    'with %o is refused',
    (odd) => {
      expect(() => toBlock({ ...block, ...odd })).toThrow()
    },
  )
})

const legacy = {
  ...{ hash: hash('e'), from: address('1'), to: address('2'), gas: '0x5208', nonce: '0x7' },
  ...{ gasPrice: '0x3b9aca00', input: '0x', value: '0xde0b6b3a7640000', type: '0x0' },
  ...{ r: '0x1', s: '0x02', v: '0x1b', ...placed },
}
const { gasPrice: _, ...priceless } = legacy

describe('a transaction', () => {
  it('of the oldest kind', () => {
    expect(toTransaction(legacy)).toEqual({
      transaction_hash: hash('e'),
      block_number: 16,
      block_hash: hash('b'),
      from: address('1'),
      to: address('2'),
      gas: 21_000,
      gas_price: 1_000_000_000,
      input: '0x',
      nonce: 7,
      transaction_index: 2,
      value: '0xde0b6b3a7640000',
      r: '0x1',
      s: '0x2',
      v: '0x1b',
    })
  })

  it('that makes a contract has no receiver', () => {
    expect(toTransaction({ ...legacy, to: null }).to).toBeNull()
    const { to: _, ...without } = legacy
    expect(toTransaction(without).to).toBeNull()
  })

  it('with blobs is a transaction like any other', () => {
    const blobs = {
      ...legacy,
      ...{ type: '0x3', gasPrice: '0x2', maxFeePerGas: '0x5', maxPriorityFeePerGas: '0x1' },
      ...{ maxFeePerBlobGas: '0x9', blobVersionedHashes: [hash('0')], accessList: [] },
      ...{ yParity: '0x1', v: '0x1' },
    }
    const { gas_price, v } = toTransaction(blobs)
    expect({ gas_price, v }).toEqual({ gas_price: 2, v: '0x1' })
  })

  it('whose node names only the parity has it as v', () => {
    const { v: _, ...rest } = legacy
    expect(toTransaction({ ...rest, yParity: '0x0' }).v).toBe('0x0')
  })

  it('that waits has the most that it may cost as its price', () => {
    const waiting = { ...legacy, type: '0x2', gasPrice: '0x2', maxFeePerGas: '0x5' }
    expect(toPendingTransaction(waiting).gas_price).toBe(5)
    expect(toPendingTransaction(legacy).gas_price).toBe(1_000_000_000)
  })

  it('whose node names no price has the most that it may cost', () => {
    expect(toTransaction({ ...priceless, type: '0x2', maxFeePerGas: '0x5' }).gas_price).toBe(5)
    expect(() => toTransaction(priceless)).toThrow('gasPrice')
  })

  it('that is a deposit has no price, no signature and perhaps no nonce', () => {
    const { r: _r, s: _s, v: _v, nonce: _n, ...bare } = priceless
    const deposit = {
      ...{ ...bare, type: '0x7e', sourceHash: hash('9'), mint: '0x1', isSystemTx: true },
      ...{ l1Fee: '0x5', l1GasPrice: '0x5', depositReceiptVersion: '0x1' },
    }
    const { gas_price, nonce, r, s, v } = toTransaction(deposit)
    expect({ gas_price, nonce, r, s, v }).toEqual({
      ...{ gas_price: 0, nonce: 0, r: '0x0', s: '0x0', v: '0x0' },
    })
    expect(Object.keys(toTransaction(deposit))).toEqual(Object.keys(toTransaction(legacy)))
  })

  it('a transaction without a signature is refused unless it is a deposit', () => {
    const { r: _, ...unsigned } = legacy
    expect(() => toTransaction(unsigned)).toThrow('r is not hex')
  })
})

const receipt = {
  ...{ transactionHash: hash('e'), from: address('1'), to: address('2'), ...placed },
  ...{ contractAddress: null, cumulativeGasUsed: '0xa410', gasUsed: '0x5208', status: '0x1' },
  ...{ logsBloom: `0x${'00'.repeat(256)}`, effectiveGasPrice: '0x3', logs: [] },
}

describe('a receipt', () => {
  it('omits the additions of a rollup', () => {
    const rollup = { ...receipt, l1Fee: '0x9', l1GasUsed: '0x9', depositNonce: '0x1' }
    expect(toReceipt(rollup)).toEqual({
      ...{ transaction_hash: hash('e'), block_number: 16, block_hash: hash('b') },
      ...{ contract_address: null, cumulative_gas_used: 42_000, from: address('1') },
      ...{ to: address('2'), gas_used: 21_000, logs_bloom: receipt.logsBloom, status: 1 },
      ...{ transaction_index: 2, effective_gas_price: 3 },
    })
  })

  it('without a price has the one of its transaction, a deposit has none', () => {
    const { effectiveGasPrice: _, ...old } = receipt
    expect(lacksPrice(old)).toBe(true)
    expect(toReceipt(old, 2n ** 60n)).toMatchObject({ status: 1 })
    expect(written(toReceipt(old, 2n ** 60n))).toContain(`"effective_gas_price":${2n ** 60n}`)
    expect(lacksPrice({ ...old, type: '0x7E' })).toBe(false)
    expect(toReceipt({ ...old, type: '0x7e' }).effective_gas_price).toBe(0)
  })

  it('has its logs as they are', () => {
    const log = { transactionHash: hash('e'), ...placed, address: address('A'), logIndex: '0x5' }
    const logs = [{ ...log, topics: [hash('F')], data: '0x01' }]
    expect(toLogs({ ...receipt, logs })).toEqual([
      {
        ...{ transaction_hash: hash('e'), address: address('a'), data: '0x01' },
        ...{ topics: [hash('f')], block_number: 16, block_hash: hash('b') },
        ...{ transaction_index: 2, log_index: 5, removed: false },
      },
    ])
    expect(() => toLogs({ ...receipt, logs: null })).toThrow()
  })
})
