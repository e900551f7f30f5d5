import { expect, it } from 'vitest'
import { feeOf } from './fees.ts'
import { stubBlock } from './stub-chain.ts'

const fee = (transaction: object, receipt: object, type = '0x2') => {
  const made = stubBlock([{ type, transaction, receipt: { gasUsed: '0x64', ...receipt } }])
  return feeOf(made.block.transactions[0]!, made.receipts[0]!)
}

it.each([
  ['the effective price', {}, { effectiveGasPrice: '0x3' }, 300n],
  [
    'the offered price where nothing else is said',
    { gasPrice: '0x5' },
    { effectiveGasPrice: undefined },
    500n,
  ],
  [
    'blobs beside the gas',
    {},
    { effectiveGasPrice: '0x1', blobGasUsed: '0xa', blobGasPrice: '0x4' },
    140n,
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

it('a deposit is paid for on the other chain', () => {
  expect(fee({}, { effectiveGasPrice: undefined, l1Fee: '0x7' }, '0x7e')).toBe(0n)
  expect(fee({}, {}, '0x7E')).toBe(0n)
})
