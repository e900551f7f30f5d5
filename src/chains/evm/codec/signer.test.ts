import fc from 'fast-check'
import { type Hex, hexToBytes, type TransactionSerializable } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import { loadRecoverSigner } from './signer.ts'

const hexOf = (minLength: number, maxLength = minLength) =>
  fc
    .uint8Array({ minLength, maxLength })
    .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}` as Hex)
const fields = fc.record({
  nonce: fc.nat(),
  gas: fc.bigInt({ min: 0n, max: 2n ** 40n }),
  value: fc.bigInt({ min: 0n, max: 2n ** 200n }),
  to: fc.option(hexOf(20), { nil: undefined }),
  data: hexOf(0, 100),
  chainId: fc.integer({ min: 1, max: 2 ** 40 }),
})
const fees = { maxFeePerGas: 9n, maxPriorityFeePerGas: 3n }
const accessList = [
  { address: `0x${'ab'.repeat(20)}` as Hex, storageKeys: [`0x${'01'.repeat(32)}` as Hex] },
]
const kinds: [string, object][] = [
  ['legacy with a chain id', { type: 'legacy', gasPrice: 7n }],
  ['legacy without one', { type: 'legacy', gasPrice: 7n, chainId: undefined }],
  ['with an access list', { type: 'eip2930', gasPrice: 7n, accessList }],
  ['of the fee market', { type: 'eip1559', ...fees, accessList }],
  [
    'with blobs',
    {
      type: 'eip4844',
      ...fees,
      maxFeePerBlobGas: 5n,
      blobVersionedHashes: [`0x01${'02'.repeat(31)}`],
      to: `0x${'cd'.repeat(20)}`,
    },
  ],
]

it.each(kinds)('the signer of a transaction %s is recovered from its encoding', async (_, kind) => {
  const recover = await loadRecoverSigner()
  await fc.assert(
    fc.asyncProperty(fields, fc.bigInt({ min: 1n, max: 2n ** 250n }), async (common, key) => {
      const account = privateKeyToAccount(`0x${key.toString(16).padStart(64, '0')}`)
      const transaction = { ...common, ...kind } as TransactionSerializable
      const encoded = await account.signTransaction(transaction)
      expect(recover(hexToBytes(encoded))).toBe(account.address.toLowerCase())
    }),
    { numRuns: 15 },
  )
})

it('a set of authorizations does not hide the signer', async () => {
  const recover = await loadRecoverSigner()
  const account = privateKeyToAccount(`0x${'11'.repeat(32)}`)
  const authorization = await account.signAuthorization({
    address: `0x${'cd'.repeat(20)}`,
    chainId: 1,
    nonce: 3,
  })
  const encoded = await account.signTransaction({
    type: 'eip7702',
    ...fees,
    chainId: 1,
    nonce: 2,
    gas: 100_000n,
    to: `0x${'ef'.repeat(20)}`,
    value: 1n,
    authorizationList: [authorization],
  })
  expect(recover(hexToBytes(encoded))).toBe(account.address.toLowerCase())
})

it('an empty signature has no signer', async () => {
  const recover = await loadRecoverSigner()
  const unsigned = hexToBytes('0xc9808080808080808080')
  expect(recover(unsigned)).toBeUndefined()
})
