import { fromBufferToBase58 } from '@polkadot-api/substrate-bindings'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatAddress, parseAddress } from './address.ts'

const account = fc.uint8Array({ minLength: 32, maxLength: 32 })
const prefix = fc.integer({ min: 0, max: 16_383 })

test('addresses are those of polkadot-api and are read back, whatever the prefix', () => {
  fc.assert(
    fc.property(account, prefix, (bytes, format) => {
      const text = formatAddress(bytes, format)
      expect(text).toBe(fromBufferToBase58(format)(Uint8Array.from(bytes)))
      expect(parseAddress(text)).toMatchObject({ ok: true, bytes: Buffer.from(bytes) })
    }),
  )
})

test('two accounts in one buffer have two addresses', () => {
  const both = Buffer.concat([Buffer.alloc(32, 1), Buffer.alloc(32, 2)])
  const [one, other] = [formatAddress(both.subarray(0, 32), 0), formatAddress(both.subarray(32), 0)]
  expect(one).not.toBe(other)
  expect(parseAddress(other)).toMatchObject({ ok: true, bytes: Buffer.alloc(32, 2) })
})

test('a changed character is refused', () => {
  fc.assert(
    fc.property(account, prefix, fc.nat(45), (bytes, format, at) => {
      const text = formatAddress(bytes, format)
      const changed = text[at] === '2' ? '3' : '2'
      const other = text.slice(0, at) + changed + text.slice(at + 1)
      fc.pre(at < text.length)
      const read = parseAddress(other)
      // One in 65,536 has the right checksum by chance.
      fc.pre(!read.ok || !Buffer.from(read.bytes).equals(bytes))
      expect(read.ok).toBe(false)
    }),
    { seed: 1 },
  )
})
