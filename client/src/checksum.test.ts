import fc from 'fast-check'
import { getAddress } from 'viem'
import { expect, test } from 'vitest'
import { checksumProblem, isChecksumAddress, lowerChecksum } from './checksum.ts'
import { bodyOf } from './request-body.ts'

const lowerAddress = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}` as const)

test('a checksum is the one of EIP-55', () => {
  fc.assert(
    fc.property(lowerAddress, fc.integer({ min: 2, max: 41 }), (lower, at) => {
      const right = getAddress(lower)
      expect(isChecksumAddress(right)).toBe(right !== lower)
      const letter = right[at] as string
      const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
      const wrong = right.slice(0, at) + other + right.slice(at + 1)
      if (wrong !== right) expect(isChecksumAddress(wrong)).toBe(false)
    }),
    { numRuns: 300 },
  )
})

test('only a right checksum is lowered, and only a wrong one is a problem', () => {
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  const wrong = address.replace('5aA', '5aa')
  expect([address, ` ${address}\n`, wrong, address.toLowerCase(), 'x'].map(lowerChecksum)).toEqual([
    ...[address.toLowerCase(), address.toLowerCase(), wrong, address.toLowerCase(), 'x'],
  ])
  expect(checksumProblem(wrong)).toMatch(/checksum .* is wrong/)
  for (const text of [address, address.toLowerCase(), `0X${address.slice(2)}`, wrong.slice(1)])
    expect(checksumProblem(text)).toBeUndefined()
})

test('addresses of a request are sent in lower case, and nothing else of it is changed', () => {
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  const lower = address.toLowerCase()
  const wrong = address.replace('5aA', '5aa')
  const request = {
    name: address,
    address,
    addresses: [address, lower, wrong],
    from: address,
    to: wrong,
    token_payload: { erc20: { contract_address: address, value: '1' } },
    nonce: 1,
    header_value: address,
  }
  expect(JSON.parse(bodyOf('c', request))).toEqual({
    ...request,
    address: lower,
    addresses: [lower, lower, wrong],
    from: lower,
    token_payload: { erc20: { contract_address: lower, value: '1' } },
  })
  expect(bodyOf('admin', { address })).toBe(JSON.stringify({ address }))
  expect(bodyOf('c', {})).toBe('{}')
})
