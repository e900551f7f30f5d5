import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { bloomHas } from '../codec/bloom.ts'
import { checkBlock } from './verify.ts'

const zero = (bytes: number) => `0x${'00'.repeat(bytes)}`
const emptyRoot = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'

// The first block of Ethereum.
const genesis = {
  hash: '0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3',
  parentHash: zero(32),
  sha3Uncles: '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347',
  miner: zero(20),
  stateRoot: '0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544',
  transactionsRoot: emptyRoot,
  receiptsRoot: emptyRoot,
  logsBloom: zero(256),
  difficulty: '0x400000000',
  number: '0x0',
  gasLimit: '0x1388',
  gasUsed: '0x0',
  timestamp: '0x0',
  extraData: '0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa',
  mixHash: zero(32),
  nonce: '0x0000000000000042',
  size: '0x21c',
  totalDifficulty: '0x400000000',
  transactions: [],
  uncles: [],
}

describe('the hash of a header', () => {
  test('of the first block', () => expect(checkBlock(genesis)).toBe('ok'))

  test.each(
    Object.keys(genesis).filter(
      (key) => !['size', 'totalDifficulty', 'transactions', 'uncles'].includes(key),
    ),
  )('covers %s', (key) => {
    const value = genesis[key as keyof typeof genesis] as string
    const other = value.endsWith('1') ? `${value.slice(0, -1)}2` : `${value.slice(0, -1)}1`
    expect(checkBlock({ ...genesis, [key]: other })).toBe('bad')
  })

  test.each(['miner', 'difficulty', 'extraData', 'nonce'])('with a damaged %s is bad', (key) => {
    for (const value of ['', '0xzz', 5, '0x123456789'])
      expect(checkBlock({ ...genesis, [key]: value })).toBe('bad')
  })

  test.each([
    ['a pending block', { ...genesis, hash: null }],
    ['a field of an unknown fork', { ...genesis, slotNumber: '0x1' }],
    ['a gap', { ...genesis, withdrawalsRoot: emptyRoot }],
    ['a header without mixHash', { ...genesis, mixHash: undefined, nonce: undefined }],
  ])('cannot be told of %s', (_, block) => expect(checkBlock(block)).toBe('unknown'))
})

test('a bloom has what was put in, and hardly anything else', () => {
  const put = (items: string[]) => {
    const bits = Buffer.alloc(256)
    for (const item of items) {
      const digest = hash('keccak-256', Buffer.from(item.slice(2), 'hex'), 'buffer')
      for (const at of [0, 2, 4]) {
        const bit = digest.readUInt16BE(at) % 2048
        bits[255 - Math.floor(bit / 8)]! |= 1 << (bit % 8)
      }
    }
    return `0x${bits.toString('hex')}`
  }
  const items = Array.from({ length: 20 }, (_, index) => `0x${`${index + 10}`.repeat(20)}`)
  const bloom = put(items)
  expect(items.every((item) => bloomHas(bloom, item))).toBe(true)
  const others = Array.from({ length: 500 }, (_, index) => `0x${`${index + 100}0`.repeat(10)}`)
  expect(others.filter((item) => bloomHas(bloom, item)).length).toBeLessThan(5)
  expect(bloomHas(zero(256), items[0]!)).toBe(false)
})
