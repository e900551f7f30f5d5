import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkBlock, hashOfHeader, headerFields, legacyCount } from '../pool/verify.ts'
import { createBlockReader } from './block-text.ts'

const read = createBlockReader()
const hexOf = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((value) => `0x${Buffer.from(value).toString('hex')}`)
const quantity = fc
  .bigInt({ min: 0n, max: 2n ** 256n - 1n })
  .map((value) => `0x${value.toString(16)}`)

/** Headers of any fork with the hash that they must have, and what else a block carries. */
const block = fc
  .tuple(
    fc.integer({ min: legacyCount, max: headerFields.length }),
    fc.tuple(
      ...headerFields.map(([, kind, size]) =>
        kind === 'quantity'
          ? quantity
          : size === undefined
            ? fc.nat({ max: 300 }).chain(hexOf)
            : hexOf(size),
      ),
    ),
    fc.record({
      transactions: fc.jsonValue({ maxDepth: 2 }),
      size: quantity,
      uncles: fc.constant([]),
    }),
  )
  .map(([count, values, rest]) => {
    const header: Record<string, unknown> = {}
    for (let index = 0; index < count; index++)
      header[headerFields[index]?.[0] as string] = values[index]
    return { ...header, ...rest, hash: hashOfHeader(header) }
  })

describe('the text of a block', () => {
  test('is judged as its fields are, in any order and with any white space', () => {
    fc.assert(
      fc.property(block, fc.constantFrom(undefined, 1), fc.boolean(), (value, indent, isTurned) => {
        const entries = Object.entries(value)
        const text = JSON.stringify(
          Object.fromEntries(isTurned ? entries.reverse() : entries),
          undefined,
          indent,
        )
        expect(read(Buffer.from(text).toString('latin1'))).toEqual({
          hash: value.hash,
          number: Number((value as Record<string, unknown>).number),
          verdict: 'ok',
        })
      }),
      { numRuns: 60 },
    )
  })

  test('is judged as its fields are when any of them is damaged, gone or strange', () => {
    const names = [...headerFields.map(([name]) => name), 'hash', 'slotNumber']
    const damage = fc.oneof(
      fc.constantFrom<unknown>(undefined, null, 5, true, [], {}, '', '0x', '0x0', '0x00', '0xzz'),
      quantity,
      hexOf(32),
    )
    fc.assert(
      fc.property(block, fc.constantFrom(...names), damage, (value, name, other) => {
        const damaged = JSON.parse(JSON.stringify({ ...value, [name]: other }))
        expect(read(JSON.stringify(damaged))?.verdict).toBe(checkBlock(damaged))
      }),
      { numRuns: 300 },
    )
  })

  test('may be longer than the room that is kept for most of them', () => {
    fc.assert(
      fc.property(block, (value) => {
        const long = { ...value, transactions: Array(500).fill({ hash: `0x${'ab'.repeat(32)}` }) }
        expect(read(JSON.stringify(long))?.verdict).toBe('ok')
        const longer = { ...value, extraData: `0x${'ab'.repeat(70_000)}` }
        expect(read(JSON.stringify(longer))?.verdict).toBe('bad')
        const right = JSON.stringify({ ...longer, hash: hashOfHeader({ ...longer }) })
        expect(read(right)?.verdict).toBe('ok')
      }),
      { numRuns: 10 },
    )
  })

  test.each(['', 'null', '[]', '"text"', '5', '{', '{"a":1', '{"a":1 "b":2}', '{"a":}', '{a:1}'])(
    'is not %s',
    (text) => expect(read(text)).toBeUndefined(),
  )

  test('is not read beyond its end, where the text before it was longer', () => {
    read(`{"hash":"0x1","number":"0x5"}${' '.repeat(100)}`)
    expect(read('{"hash":"0x1"')).toBeUndefined()
    expect(read('{"hash":"0x1"}')).toEqual({ hash: '0x1', number: -1, verdict: 'unknown' })
  })

  test('of two equal members the last counts, as in any reader', () => {
    expect(read('{"hash":"a","hash":"b","number":"0x1","number":"0x2"}')).toMatchObject({
      hash: 'b',
      number: 2,
    })
  })
})

test('a field of another length is read as it is, wherever a quote may stand by chance', () => {
  // From the quote before this nonce it is as far to the one before `b` as to the end of a real one.
  const text = '{"hash":"0x1","nonce":"0x1","a":"123456","b":"0x2","number":"0x7"}'
  expect(text.indexOf('"b"') - text.indexOf('"0x1","a"')).toBe(19)
  expect(read(text)).toEqual({ hash: '0x1', number: 7, verdict: 'unknown' })
})
