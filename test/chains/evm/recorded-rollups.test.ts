// What nodes of real rollups answered, against the codecs: hashes and roots are those of the network.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { feeOf, mintOf } from '../../../src/chains/evm/block/fees.ts'
import { checkBlock, hashOfHeader } from '../../../src/chains/evm/codec/header-hash.ts'
import type { RawReceipt } from '../../../src/chains/evm/codec/raw.ts'
import { encodeTransaction } from '../../../src/chains/evm/codec/transactions.ts'
import { keccakDigits, listRoot } from '../../../src/chains/evm/codec/trie.ts'

const { base_deposits, mantle_deposit, op_block, ovm_message, scroll_message } = JSON.parse(
  readFileSync(new URL('../../fixtures/evm/rollups.json', import.meta.url), 'utf8'),
)

it('deposits of Base have the hash of their encoding, mint their value and cost nothing', () => {
  for (const deposit of base_deposits) {
    expect(`0x${keccakDigits(encodeTransaction(deposit)!)}`).toBe(deposit.hash)
    expect(mintOf(deposit)).toBe(BigInt(deposit.mint))
    expect(feeOf(deposit, { gasUsed: deposit.gas } as RawReceipt)).toBe(0n)
  }
})

it('a block of an OP-style rollup has the hash of its header and the root of its transactions', () => {
  expect(checkBlock(op_block)).toBe('ok')
  expect(hashOfHeader(op_block)).toBe(op_block.hash)
  const encoded = op_block.transactions.map(encodeTransaction) as string[]
  expect(`0x${listRoot(encoded).replace(/^0x/, '')}`).toBe(op_block.transactionsRoot)
})

it('messages of Scroll and of the first OP stack, and a deposit of Mantle, have the hashes of their encodings', () => {
  for (const transaction of [scroll_message, ovm_message, mantle_deposit])
    expect(`0x${keccakDigits(encodeTransaction(transaction)!)}`).toBe(transaction.hash)
  // Where the node leaves the field of Mantle out, its hash shows the encoding.
  const { ethValue: _, ...without } = mantle_deposit
  expect(`0x${keccakDigits(encodeTransaction(without)!)}`).toBe(mantle_deposit.hash)
})
