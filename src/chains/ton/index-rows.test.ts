import { describe, expect, it } from 'vitest'
import { readIndexBlocks, readIndexJettonWallets, readIndexStates } from './index-rows.ts'

const address = `0:${'AB'.repeat(32)}`
const bytes = Buffer.concat([Buffer.alloc(1), Buffer.alloc(32, 0xab)])
const state = { address, balance: '5', last_transaction_lt: '7' }

describe('rows of API v3', () => {
  it('are read with amounts of any size', () => {
    const balance = String(2n ** 100n)
    expect(readIndexStates([{ ...state, balance }])).toEqual([
      { address: bytes, balance: 2n ** 100n, last_lt: 7n },
    ])
    const wallet = { ...state, owner: `-1:${'cd'.repeat(32)}`, jetton: address }
    expect(readIndexJettonWallets([wallet])).toMatchObject([{ balance: 5n, jetton: bytes }])
    const block = { workchain: 0, shard: 'E000000000000000', seqno: 3, end_lt: '9' }
    const root_hash = Buffer.alloc(32, 4)
    expect(readIndexBlocks([{ ...block, root_hash: root_hash.toString('base64') }])).toEqual([
      { ...block, shard: 0xe000000000000000n, end_lt: 9n, root_hash },
    ])
  })

  it('are left out where an index knows nothing of an account', () => {
    for (const hole of [{ balance: null }, { last_transaction_lt: null }, { address: null }])
      expect(readIndexStates([state, { ...state, ...hole }])).toHaveLength(1)
  })

  it('are left out where a jetton wallet says what cannot be', () => {
    const wallet = { ...state, owner: address, jetton: address }
    for (const odd of [
      { balance: '-5' },
      { balance: '9'.repeat(78) },
      { owner: '7:00' },
      { jetton: '' },
    ])
      expect(readIndexJettonWallets([wallet, { ...wallet, ...odd }])).toHaveLength(1)
    expect(readIndexJettonWallets([{ ...wallet, address: 'x' }])).toBeUndefined()
  })

  it.each([
    ['no list', {}],
    ['no rows', [5]],
    ['a number for a text', [{ ...state, balance: 5 }]],
    ['a negative balance', [{ ...state, balance: '-5' }]],
    ['a fraction', [{ ...state, balance: '5.0' }]],
    ['an address that is none', [{ ...state, address: '1:00' }]],
  ])('mean nothing where they are %s', (_, rows) => {
    expect(readIndexStates(rows)).toBeUndefined()
  })
})
