import { expect, test } from 'vitest'
import { decimalText, tokenUnit } from './event-line.ts'

test.each([
  ['1300000', 6, '1.3 USDC'],
  ['1', 6, '0.000001 USDC'],
  ['5000000', 6, '5 USDC'],
  ['7', 0, '7 USDC'],
])('%s with %i decimals is %s', (value, decimals, text) => {
  expect(decimalText(value, { decimals, symbol: 'USDC' })).toBe(text)
})

test('a token without a symbol or decimals has no unit', () => {
  expect(tokenUnit({ transfer_metadata: { erc20: { symbol: 'USDC', decimals: 6 } } })).toEqual({
    symbol: 'USDC',
    decimals: 6,
  })
  expect(tokenUnit({ transfer_metadata: { erc20: { symbol: '', decimals: 6 } } })).toBeUndefined()
  expect(tokenUnit({ transfer_metadata: null })).toBeUndefined()
  expect(tokenUnit({})).toBeUndefined()
})
