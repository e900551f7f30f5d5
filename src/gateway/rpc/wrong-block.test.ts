import { describe, expect, test } from 'vitest'
import { createBlockReader, isWrongBlock } from './wrong-block.ts'

const zero = (bytes: number) => `0x${'00'.repeat(bytes)}`
const emptyRoot = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'
const hash = '0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3'

// The first block of Ethereum.
const genesis = {
  hash,
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
  transactions: [{ hash: emptyRoot, value: '0x1' }],
  uncles: [],
}
const any = { number: -1, hash: '' }
const isWrong = (block: unknown, asked = any) =>
  isWrongBlock({ ok: true, result: JSON.stringify(block) }, asked, createBlockReader())

describe('the answer to a question for a block', () => {
  test('is right when its hash is that of its header', () => {
    expect(isWrong(genesis)).toBe(false)
    expect(isWrong(genesis, { number: 0, hash })).toBe(false)
  })

  test.each(['gasUsed', 'timestamp', 'stateRoot', 'transactionsRoot', 'miner'] as const)(
    'is wrong when its %s was changed',
    (field) => {
      const value = genesis[field]
      expect(isWrong({ ...genesis, [field]: `${value.slice(0, -1)}7` })).toBe(true)
    },
  )

  test('is wrong when it is another block', () => {
    expect(isWrong(genesis, { number: 1, hash: '' })).toBe(true)
    expect(isWrong(genesis, { number: -1, hash: emptyRoot })).toBe(true)
  })

  test('is not checked on a chain with its own rules, or when the result is not a block', () => {
    expect(isWrong({ ...genesis, gasUsed: '0x7', l1BlockNumber: '0x1' })).toBe(false)
    expect(isWrong({ number: '0x5', hash }, { number: 5, hash })).toBe(false)
    expect(isWrong(null)).toBe(false)
    expect(isWrongBlock({ ok: false, error: '{"code":-32000}' }, any, createBlockReader())).toBe(
      false,
    )
  })

  test.each([[true], [5], ['text'], [[]]])('is wrong when it is %j', (value) =>
    expect(isWrong(value)).toBe(true),
  )
})
