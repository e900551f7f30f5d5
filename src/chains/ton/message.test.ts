import { beginCell, type Cell, loadMessage as loadWhole, storeMessage } from '@ton/core'
import { expect, it } from 'vitest'
import { addressOf } from '../../../test/chains/ton/ton-payers.ts'
import { readRealBlock } from '../../../test/helpers/ton-real-blocks.ts'
import { messageCellsOf } from './cells.ts'
import { findByKey } from './dictionary.ts'
import { readMetadata } from './jettons.ts'
import { loadMessage } from './message.ts'

/** A dictionary of a few cells in which both branches of the first edges are the same cell. */
const manyLeaves = (levels: number): Cell => {
  const left = 256 - levels
  // `hml_same`: the rest of the key is zeros; then `hml_short` without a label for every fork.
  const leaf = beginCell()
    .storeUint(0b110, 3)
    .storeUint(left, Math.ceil(Math.log2(left + 1)))
  let cell = leaf.storeRef(beginCell().storeUint(0, 8).storeStringTail('x').endCell()).endCell()
  for (let level = 0; level < levels; level++)
    cell = beginCell().storeUint(0, 2).storeRef(cell).storeRef(cell).endCell()
  return cell
}

it('a message is read although the libraries that it brings have 2^60 leaves', () => {
  const address = addressOf(Buffer.alloc(33))
  const body = beginCell().storeUint(7, 32).endCell()
  for (const inReference of [true, false]) {
    const init = beginCell().storeUint(0b00001, 5).storeRef(manyLeaves(60))
    const head = beginCell().storeUint(0b10, 2).storeUint(0, 2).storeAddress(address).storeCoins(0)
    const cell = inReference
      ? head.storeUint(0b11, 2).storeRef(init.endCell()).storeBit(true).storeRef(body).endCell()
      : head.storeUint(0b10, 2).storeBuilder(init).storeBit(true).storeRef(body).endCell()
    const read = loadMessage(cell)
    expect(read.body.equals(body)).toBe(true)
    expect(read.info.type).toBe('external-in')
  }
})

it('the messages of recorded blocks are read as the library reads them', () => {
  let inits = 0
  for (const { cell } of readRealBlock('mainnet_0_71398501_2026-05-13.boc').transactions) {
    const { in: received, out } = messageCellsOf(cell)
    for (const message of [...(received ? [received] : []), ...out]) {
      const { init, ...whole } = loadWhole(message.beginParse())
      const read = loadMessage(message)
      if (init) inits++
      const [one, other] = [read, whole].map((given) =>
        beginCell()
          .store(storeMessage({ ...given, init: null }))
          .endCell(),
      )
      expect(one!.equals(other!)).toBe(true)
      expect(read.body.equals(whole.body)).toBe(true)
    }
  }
  expect(inits).toBeGreaterThan(0)
})

it('metadata is read although its dictionary has 2^60 leaves', () => {
  const content = beginCell().storeUint(0, 8).storeMaybeRef(manyLeaves(60)).endCell()
  expect(readMetadata(content)).toEqual({ name: null, symbol: null, decimals: 9 })
  expect(findByKey(manyLeaves(60), Buffer.alloc(32))?.beginParse().loadUint(8)).toBe(0)
  expect(findByKey(manyLeaves(60), Buffer.alloc(32, 1))).toBeUndefined()
})
