import fc from 'fast-check'
import { toRlp } from 'viem'
import { describe, expect, test } from 'vitest'
import {
  encodeRlp,
  itemsOf,
  numberDigits,
  putLength,
  type RlpItem,
  rlpData,
  rlpDigits,
  rlpList,
  rlpQuantity,
} from './rlp.ts'

const bytes = (maxLength: number) =>
  fc.uint8Array({ maxLength }).map((value) => Buffer.from(value).toString('hex'))
const { item } = fc.letrec<{ item: RlpItem }>((tie) => ({
  item: fc.oneof(
    { maxDepth: 4 },
    bytes(300),
    fc.constantFrom('', '00', '7f', '80', 'ff'.repeat(55), 'ff'.repeat(56), 'ff'.repeat(70_000)),
    fc.array(tie('item'), { maxLength: 6 }),
  ),
}))
type Hex = `0x${string}`
type HexItem = Hex | readonly HexItem[]
const prefixed = (one: RlpItem): HexItem =>
  typeof one === 'string' ? `0x${one}` : one.map(prefixed)

describe('RLP', () => {
  test('equals the encoding of viem', () => {
    fc.assert(
      fc.property(item, (value) => {
        expect(`0x${encodeRlp(value)}`).toBe(toRlp(prefixed(value)))
      }),
    )
  })

  test('of a quantity is its shortest bytes', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), fc.nat(3), (value, zeros) => {
        const digits = value === 0n ? '' : value.toString(16)
        const even = digits.length % 2 ? `0${digits}` : digits
        const text = `0x${'0'.repeat(zeros)}${value.toString(16)}`
        expect(`0x${rlpQuantity(text)}`).toBe(toRlp(`0x${even}`))
      }),
    )
  })

  test('joined from parts is the same as encoded at once', () => {
    fc.assert(
      fc.property(fc.array(bytes(100), { maxLength: 10 }), (values) => {
        expect(rlpList(values.map(rlpDigits).join(''))).toBe(encodeRlp(values))
        expect(values.map((value) => rlpData(`0x${value}`))).toEqual(values.map(rlpDigits))
      }),
    )
  })

  test('of a missing value is empty, and text that is not hex is refused', () => {
    expect([rlpData(undefined), rlpData(null), rlpQuantity(null)]).toEqual(['80', '80', '80'])
    for (const text of ['', 'ab', '0x1']) expect(() => rlpData(text)).toThrow(TypeError)
    expect(() => rlpQuantity('5')).toThrow(TypeError)
  })
})

test('the items of a list are found where they were written', () => {
  fc.assert(
    fc.property(fc.array(item, { maxLength: 8 }), (values) => {
      const list = Buffer.from(encodeRlp(values), 'hex')
      const found = itemsOf(list).map(({ from, end }) => list.toString('hex', from, end))
      expect(found).toEqual(values.map(encodeRlp))
    }),
  )
})

test('a prefix written in front of bytes is that of their encoding', () => {
  for (const length of [0, 1, 55, 56, 255, 256, 65_535, 65_536, 70_000]) {
    const room = new Uint8Array(9)
    const at = putLength(room, 9, length, 0xc0)
    const whole = rlpList('00'.repeat(length))
    expect(Buffer.from(room.subarray(at)).toString('hex')).toBe(whole.slice(0, 2 * (9 - at)))
    expect(whole.length / 2).toBe(9 - at + length)
  }
})

test('the digits of a number', () => {
  expect([0, 1, 255, 256, 2 ** 31].map(numberDigits)).toEqual(['', '01', 'ff', '0100', '80000000'])
})
