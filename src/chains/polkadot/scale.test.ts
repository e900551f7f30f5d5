import type { LookupEntry } from '@polkadot-api/metadata-builders'
import {
  Bytes,
  compact,
  Option,
  Result,
  Struct,
  str,
  Tuple,
  u8,
  u16,
  u32,
  u64,
  u128,
  Variant,
  Vector,
} from '@polkadot-api/substrate-bindings'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSkips, readCompact, readUint, ScaleError, skipCompact } from './scale.ts'

let id = 0
const entry = (value: object) => ({ id: id++, ...value }) as LookupEntry
const [e8, e16, e64, e128, text] = ['u8', 'u16', 'u64', 'u128', 'str'].map((value) =>
  entry({ type: 'primitive', value }),
) as [LookupEntry, LookupEntry, LookupEntry, LookupEntry, LookupEntry]

// One type with every kind of part, beside the library's codec for it.
const type = entry({
  type: 'struct',
  value: {
    list: entry({ type: 'sequence', value: entry({ type: 'tuple', value: [e16, text] }) }),
    maybe: entry({ type: 'option', value: e128 }),
    outcome: entry({ type: 'result', value: { ok: e8, ko: text } }),
    amount: entry({ type: 'compact', isBig: true, size: 'u128' }),
    fixed: entry({ type: 'array', value: e8, len: 3 }),
    choice: entry({
      type: 'enum',
      value: {
        Nothing: { type: 'void', idx: 0 },
        One: { type: 'lookupEntry', value: e64, idx: 1 },
        Both: { type: 'struct', value: { a: e8, b: text }, idx: 2 },
      },
    }),
  },
})
const codec = Struct({
  list: Vector(Tuple(u16, str)),
  maybe: Option(u128),
  outcome: Result(u8, str),
  amount: compact,
  fixed: Bytes(3),
  choice: Variant({
    Nothing: Struct({}),
    One: u64,
    Both: Struct({ a: u8, b: str }),
  }),
})
const byte = fc.integer({ min: 0, max: 255 })
const value = fc.record({
  list: fc.array(fc.tuple(fc.integer({ min: 0, max: 65_535 }), fc.string())),
  maybe: fc.option(fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }), { nil: undefined }),
  outcome: fc.oneof(
    byte.map((ok) => ({ success: true as const, value: ok })),
    fc.string().map((ko) => ({ success: false as const, value: ko })),
  ),
  amount: fc.oneof(fc.integer({ min: 0, max: 2 ** 31 }), fc.bigInt({ min: 0n, max: 2n ** 120n })),
  fixed: fc.uint8Array({ minLength: 3, maxLength: 3 }),
  choice: fc.oneof(
    fc.constant({ type: 'Nothing' as const, value: {} }),
    fc
      .bigInt({ min: 0n, max: 2n ** 64n - 1n })
      .map((one) => ({ type: 'One' as const, value: one })),
    fc.record({ a: byte, b: fc.string() }).map((both) => ({ type: 'Both' as const, value: both })),
  ),
})

describe('walking over SCALE', () => {
  it('ends where the library ends, for any value and at any place of a buffer', () => {
    const skip = createSkips()(type)
    fc.assert(
      fc.property(value, fc.nat(40), (one, before) => {
        const encoded = codec.enc(one as never)
        const bytes = Buffer.concat([Buffer.alloc(before, 0xff), encoded, Buffer.of(1, 2)])
        expect(skip(bytes, before)).toBe(before + encoded.length)
        // A view into a larger buffer is read as what it is.
        expect(skip(bytes.subarray(before), 0)).toBe(encoded.length)
      }),
      { numRuns: 200 },
    )
  })

  it('reads counts and amounts as the library writes them', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 30 - 1 }), (count) => {
        const bytes = compact.enc(count)
        expect([readCompact(bytes, 0), skipCompact(bytes, 0)]).toEqual([count, bytes.length])
      }),
    )
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }), (amount) => {
        expect(readUint(u128.enc(amount), 0, 16)).toBe(amount)
      }),
    )
    expect(readUint(u32.enc(900), 0, 4)).toBe(900n)
  })

  it('reports bytes that end too early or do not match the metadata', () => {
    const skip = createSkips()
    expect(() => skip(text)(new Uint8Array(), 0)).toThrow(ScaleError)
    const choice = entry({ type: 'enum', value: { Only: { type: 'void', idx: 0 } } })
    expect(() => skip(choice)(Uint8Array.of(7), 0)).toThrow(ScaleError)
    const list = entry({ type: 'sequence', value: e128 })
    expect(() => skip(list)(Uint8Array.of(0xfe, 0xff, 0xff, 0xff), 0)).toThrow(ScaleError)
  })
})
