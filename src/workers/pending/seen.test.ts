import { expect, test } from 'vitest'
import { toSeen } from './seen.ts'

const raw = (nonce: string) => ({
  ...{ hash: `0x${'11'.repeat(32)}`, from: `0x${'22'.repeat(20)}`, to: `0x${'33'.repeat(20)}` },
  ...{ type: '0x0', nonce, gas: '0x5208', gasPrice: '0x1', value: '0x0', input: '0x' },
  ...{ r: '0x1', s: '0x1', v: '0x1b', blockHash: null },
})

test.each([
  ['0x0', 0],
  ['0x1fffffffffffff', 2 ** 53 - 1],
  ['0x20000000000000', undefined],
  ['0xffffffffffffffff', undefined],
])('a pending transaction with the nonce %s is recorded with %s', (given, nonce) => {
  expect(toSeen(raw(given), 0)?.nonce).toBe(nonce)
})
