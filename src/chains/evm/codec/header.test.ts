import { describe, expect, it } from 'vitest'
import type { Proof } from '../block/proof.ts'
import { addressOf, type StubTransaction, stubBlock, wordOf } from '../testing/stub-chain.ts'
import { readBlock, whyRefused } from './header.ts'
import { hashOfHeader } from './header-hash.ts'

// Withdrawals of block 22,180,097 of Ethereum (wevm/viem, src/utils/rpc/ipc.test.ts, MIT).
const root = '0x33747cc6d2692bffa01c25aab8323b628778f1e9456cfacea32efb81a17c445a'
const amounts = [
  ...['0x12761ee', '0x127530f', '0x127b3a1', '0x126d432', '0x1271a9d', '0x12704a9', '0x126c493'],
  ...['0x12785a7', '0x1271a3d', '0x1276002', '0x126f825', '0x1275945', '0x1270e42', '0x1270989'],
  ...['0x12757f2', '0x1276b9f'],
]
const withdrawals = amounts.map((amount, at) => ({
  index: `0x${(0x4e822fb + at).toString(16)}`,
  validatorIndex: `0x${(0x2f2b3 + at).toString(16)}`,
  address: `0x${at < 13 ? 'caf3b970b4596391cf74a1fa833d0c9edd71470c' : 'a9290b61d99562a213428d2d972420acd0077c21'}`,
  amount,
}))
const [first, ...others] = withdrawals as [(typeof withdrawals)[0], ...typeof withdrawals]
const emptyRoot = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'
const deposit: StubTransaction = { type: '0x7e' }

/** A block with these members that the header commits to. */
const blockOf = (members: object, transactions: StubTransaction[] = [{}], number = 1) => {
  const parent = number === 1 ? stubBlock([]) : undefined
  const { block } = stubBlock(transactions, parent && { parent })
  const changed = { ...block, ...members }
  return { ...changed, hash: hashOfHeader(changed) }
}
const read = (block: ReturnType<typeof blockOf>, proof: Proof = 'root') =>
  readBlock(block, { number: Number(block.number), rules: { proof, unproven_types: new Set() } })

describe('withdrawals', () => {
  it('are those of the root in the header', () => {
    const block = blockOf({ withdrawalsRoot: root, withdrawals })
    expect(read(block)?.withdrawals).toEqual(withdrawals)
    expect(read(blockOf({ withdrawalsRoot: emptyRoot, withdrawals: [] }))?.withdrawals).toEqual([])
  })

  it.each<[string, unknown]>([
    ['left out', undefined],
    ['none', []],
    ['one less', others],
    ['in another order', [...others, first]],
    ['of another account', [{ ...first, address: addressOf(7) }, ...others]],
    ['of another amount', [{ ...first, amount: '0x1' }, ...others]],
    ['no list', 'none'],
    ['without an address', [{ ...first, address: '0x' }, ...others]],
  ])('are refused where a node says others: %s', (_, said) => {
    const block = blockOf({ withdrawalsRoot: root, withdrawals: said })
    expect(read(block)).toBeUndefined()
    expect(whyRefused(block, { proof: 'root', unproven_types: new Set() })).toBe(
      'the withdrawals are not those of the header; if other nodes send the same, set `proof: bloom`',
    )
  })

  it('are not read where the header commits to none', () => {
    expect(read(blockOf({ withdrawals }))).not.toHaveProperty('withdrawals')
    expect(read(blockOf({ withdrawalsRoot: emptyRoot, withdrawals }))).toBeUndefined()
  })

  it('of the OP stack are none, whatever root is in their place', () => {
    const storage = wordOf(77)
    for (const said of [undefined, []]) {
      const block = blockOf({ withdrawalsRoot: storage, withdrawals: said }, [deposit, {}])
      expect(read(block)).toBeDefined()
      const genesis = blockOf({ withdrawalsRoot: storage, withdrawals: said }, [], 0)
      expect(read(genesis)).toBeDefined()
    }
    const claimed = blockOf({ withdrawalsRoot: storage, withdrawals }, [deposit, {}])
    expect(read(claimed)).toBeUndefined()
  })

  it('are taken as they are where the operator asks for no root', () => {
    const block = blockOf({ withdrawalsRoot: root, withdrawals: others })
    expect(read(block, 'bloom')?.withdrawals).toEqual(others)
    expect(read({ ...block, withdrawals: 'none' as never }, 'bloom')).toBeUndefined()
  })
})
