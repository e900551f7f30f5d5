import { Transaction } from 'ethers'
import fc from 'fast-check'
import { keccak256, serializeTransaction } from 'viem'
import { privateKeyToAccount, sign } from 'viem/accounts'
import { expect, it } from 'vitest'
import { signedTransaction, signingHash } from './legacy-transaction.ts'
import { readSignature } from './signature.ts'

const key = `0x${'4b'.repeat(32)}` as const
const account = privateKeyToAccount(key)
const hex = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex')}` as `0x${string}`

const bytes = (options: fc.IntArrayConstraints) =>
  fc.uint8Array(options).map((it) => Buffer.from(it))
const fields = fc.record({
  from: fc.constant(Buffer.from(account.address.slice(2), 'hex')),
  to: bytes({ minLength: 20, maxLength: 20 }),
  value: fc.bigInt({ min: 0n, max: (1n << 256n) - 1n }),
  gas: fc.bigInt({ min: 1n, max: (1n << 63n) - 1n }),
  gas_price: fc.bigInt({ min: 0n, max: (1n << 200n) - 1n }),
  data: bytes({ maxLength: 200 }),
  nonce: fc.maxSafeNat(),
  chain_id: fc.bigInt({ min: 1n, max: BigInt(Number.MAX_SAFE_INTEGER) / 2n - 36n }),
})

// The curve is slow: most transactions are signed with numbers that fit, some with the key.
const numbers = fc.record({
  r: fc.bigInt({ min: 1n, max: (1n << 256n) - 1n }),
  s: fc.bigInt({ min: 1n, max: (1n << 255n) - 1n }),
  parity: fc.constantFrom(0 as const, 1 as const),
})
const inViem = (one: typeof fields extends fc.Arbitrary<infer value> ? value : never) => ({
  type: 'legacy' as const,
  chainId: Number(one.chain_id),
  nonce: one.nonce,
  gas: one.gas,
  gasPrice: one.gas_price,
  to: hex(one.to),
  value: one.value,
  data: hex(one.data),
})
const word = (number: bigint) => `0x${number.toString(16).padStart(64, '0')}` as const

const timeout = 60_000

it('message and bytes of 1,000 random transactions are those of viem and of ethers', {
  timeout,
}, () => {
  fc.assert(
    fc.property(fields, numbers, (one, { r, s, parity }) => {
      const theirs = inViem(one)
      const ethers = Transaction.from({
        ...theirs,
        type: 0,
        gasLimit: theirs.gas,
        gasPrice: theirs.gasPrice,
      })
      const message = hex(signingHash(one))
      expect(message).toBe(keccak256(serializeTransaction(theirs)))
      expect(message).toBe(ethers.unsignedHash)
      const { raw, hash } = signedTransaction(one, { r, s, parity })
      const v = one.chain_id * 2n + 35n + BigInt(parity)
      const serialized = serializeTransaction(theirs, { r: word(r), s: word(s), v })
      expect(hex(raw)).toBe(serialized)
      expect(hex(hash)).toBe(keccak256(serialized))
      ethers.signature = { r: word(r), s: word(s), yParity: parity }
      expect(hex(raw)).toBe(ethers.serialized)
    }),
    { numRuns: 1_000 },
  )
})

it('every form of a good signature is read, and gives the bytes that viem signs', {
  timeout,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fields, async (one) => {
      const { r, s, yParity } = await sign({ hash: hex(signingHash(one)), privateKey: key })
      const parity = yParity as 0 | 1
      const joined = `${r}${s.slice(2).padStart(64, '0')}`
      const byte = (v: bigint) => {
        const digits = v.toString(16)
        return digits.length % 2 ? `0${digits}` : digits
      }
      const compact = BigInt(s) | (BigInt(parity) << 255n)
      const forms = [
        ...[0n, 27n, one.chain_id * 2n + 35n].map((v) => joined + byte(v + BigInt(parity))),
        `${r}${word(compact).slice(2)}`,
      ]
      for (const form of [...forms, ...forms.map((text) => text.slice(2).toUpperCase())]) {
        const read = await readSignature(form, one)
        expect(read).toEqual({ ok: true, signature: { r: BigInt(r), s: BigInt(s), parity } })
        if (read.ok)
          expect(hex(signedTransaction(one, read.signature).raw)).toBe(
            await account.signTransaction(inViem(one)),
          )
      }
    }),
    { numRuns: 8 },
  )
})

it('no other text is read', { timeout }, async () => {
  await fc.assert(
    fc.asyncProperty(fields, fc.uint8Array({ maxLength: 90 }), async (one, noise) => {
      const read = await readSignature(hex(noise), one)
      expect(read.ok).toBe(false)
    }),
    { numRuns: 100 },
  )
})
