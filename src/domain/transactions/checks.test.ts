import { expect, it } from 'vitest'
import { OperationError } from '../../contract/errors/errors.ts'
import { checkAgainstChain, type Facts } from './checks.ts'

const facts: Facts = {
  gas_limit: 30_000_000n,
  base_fee: 10n,
  intrinsic_gas: 21_000n,
  node_price: 10n ** 9n,
  balance: 10n ** 30n,
  committed: 0n,
  missing_nonce: undefined,
}
const transaction = { value: 1n, gas: 21_000n, gas_price: 10n ** 9n, nonce: 3 }
const fieldsOf = (change: object, known: Partial<Facts> = {}): string[] => {
  try {
    return checkAgainstChain({ ...transaction, ...change }, { ...facts, ...known })
  } catch (error) {
    if (!(error instanceof OperationError)) throw error
    return [error.reason, ...error.errors.map(({ field }) => field)]
  }
}

it('takes everything between its bounds', () => {
  expect(fieldsOf({})).toEqual([])
  expect(fieldsOf({ gas: 30_000_000n })).toEqual([])
  expect(fieldsOf({}, { base_fee: undefined })).toEqual([])
  expect(fieldsOf({}, { balance: 1n + 21_000n * 10n ** 9n })).toEqual([])
})

it('knows no limit where the chain names none', () => {
  expect(fieldsOf({ gas: 10n ** 12n }, { gas_limit: 0n })).toEqual([])
})

it('takes an absurd price for a mistake only where it costs much', () => {
  const dear = { gas_price: 10n ** 14n }
  expect(fieldsOf(dear)).toEqual(['INVALID_REQUEST', 'gas_price'])
  // A coin that is worth little, whose nodes ask for as much.
  expect(fieldsOf(dear, { node_price: 10n ** 12n })).toEqual([])
  // A chain that asks for next to nothing.
  expect(fieldsOf({}, { node_price: 1n })).toEqual([])
})

it('wants the whole cost in the account, to the last unit', () => {
  const cost = 1n + 21_000n * 10n ** 9n
  expect(fieldsOf({}, { balance: cost - 1n })).toEqual(['INSUFFICIENT_FUNDS', 'from'])
  expect(fieldsOf({}, { balance: cost, committed: 1n })).toHaveLength(1)
  expect(fieldsOf({}, { balance: cost + 1n, committed: 1n })).toEqual([])
})
