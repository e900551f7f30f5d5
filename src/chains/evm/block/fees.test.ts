import { expect, it } from 'vitest'
import { stubBlock } from '../testing/stub-chain.ts'
import { feeOf } from './fees.ts'

const fee = (transaction: object, receipt: object, type = '0x2') => {
  // The stub encodes only the types of Ethereum and OP-style chains.
  const made = stubBlock([{ type: '0x2', transaction, receipt: { gasUsed: '0x64', ...receipt } }])
  return feeOf({ ...made.block.transactions[0]!, type }, made.receipts[0]!)
}

it.each([
  ['the effective price', {}, { effectiveGasPrice: '0x3' }, 300n],
  [
    'the offered price where nothing else is said',
    { gasPrice: '0x5' },
    { effectiveGasPrice: undefined },
    500n,
  ],
  ['what a rollup takes for the other chain', {}, { effectiveGasPrice: '0x1', l1Fee: '0x7' }, 107n],
  [
    'what an operator takes',
    {},
    {
      effectiveGasPrice: '0x1',
      l1Fee: '0x7',
      operatorFeeScalar: '0x1e8480',
      operatorFeeConstant: '0x9',
    },
    100n + 7n + 200n + 9n,
  ],
])('a fee is made of %s', (_, transaction, receipt, expected) => {
  expect(fee(transaction, receipt)).toBe(expected)
})

it('blobs cost beside the gas, the data footprint of other transactions does not', () => {
  const receipt = { effectiveGasPrice: '0x1', blobGasUsed: '0xa', blobGasPrice: '0x4' }
  expect(fee({}, receipt, '0x3')).toBe(140n)
  expect(fee({}, receipt, '0x2')).toBe(100n)
})

/** Receipts in the shape of each chain's own nodes. */
it.each<[string, object, object, string, bigint]>([
  [
    'OP Mainnet before Ecotone',
    {},
    { l1Fee: '0x2540be400', l1FeeScalar: '0.684', l1GasPrice: '0x4a817c800', l1GasUsed: '0x640' },
    '0x2',
    100n * 7n + 10_000_000_000n,
  ],
  [
    'an OP-style chain since Isthmus, a scalar that is no whole wei',
    {},
    { l1Fee: '0x64', operatorFeeScalar: '0x7a120', operatorFeeConstant: '0x5' },
    '0x2',
    100n * 7n + 100n + 50n + 5n,
  ],
  [
    'an OP-style chain since Jovian',
    {},
    {
      ...{ l1Fee: '0x64', operatorFeeScalar: '0x3', operatorFeeConstant: '0x5' },
      ...{ daFootprintGasScalar: '0x190', blobGasUsed: '0x9c40' },
    },
    '0x2',
    100n * 7n + 100n + 100n * 3n * 100n + 5n,
  ],
  [
    'an OP-style chain since Jovian without an operator fee',
    {},
    { l1Fee: '0x64', daFootprintGasScalar: '0x190', blobGasUsed: '0x9c40' },
    '0x2',
    100n * 7n + 100n,
  ],
  [
    'Mantle before Arsia, whose gas holds the other fee',
    {},
    { l1Fee: '0x64', tokenRatio: '0xbb8', l1FeeScalar: '0.01' },
    '0x0',
    100n * 7n,
  ],
  [
    'Mantle since Arsia',
    {},
    {
      ...{ l1Fee: '0x64', tokenRatio: '0xbb8', daFootprintGasScalar: '0x190' },
      ...{ operatorFeeScalar: '0x2', operatorFeeConstant: '0x1' },
    },
    '0x2',
    100n * 7n + 100n + 100n * 2n * 100n + 1n,
  ],
  ['Scroll', {}, { l1Fee: '0x1f4' }, '0x2', 100n * 7n + 500n],
  ['a message on Scroll', {}, { l1Fee: '0x0' }, '0x7e', 0n],
  [
    'Arbitrum, whose gas holds the other fee',
    {},
    { gasUsedForL1: '0x32', l1BlockNumber: '0x1' },
    '0x2',
    100n * 7n,
  ],
  ['the redeem of a ticket on Arbitrum', {}, { gasUsedForL1: '0x0' }, '0x68', 0n],
  [
    'ZKsync',
    {},
    { l1BatchNumber: '0x1', l1BatchTxIndex: '0x1', l2ToL1Logs: [] },
    '0x71',
    100n * 7n,
  ],
  ['a request from the other chain on ZKsync', {}, { l2ToL1Logs: [] }, '0xff', 0n],
  [
    'Celo, paid in a token',
    { feeCurrency: '0x765de816845861e75a25fca122bb6898b8b1282a' },
    {},
    '0x7b',
    0n,
  ],
  ['Morph, paid in a token', { feeTokenID: '0x1' }, { l1Fee: '0x64' }, '0x7f', 0n],
  ['Morph, paid in its coin', { feeTokenID: '0x0' }, { l1Fee: '0x64' }, '0x7f', 100n * 7n + 100n],
  ['Celo, paid in its own coin', { feeCurrency: null }, { l1Fee: '0x0' }, '0x7b', 100n * 7n],
])('a fee on %s', (_, transaction, receipt, type, expected) => {
  expect(fee(transaction, { effectiveGasPrice: '0x7', ...receipt }, type)).toBe(expected)
})

it('a deposit is paid for on the other chain', () => {
  expect(fee({}, { effectiveGasPrice: undefined, l1Fee: '0x7' }, '0x7e')).toBe(0n)
  expect(fee({}, {}, '0x7E')).toBe(0n)
})
