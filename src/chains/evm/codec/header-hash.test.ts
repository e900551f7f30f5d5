import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  checkBlock,
  hashOfHeader,
  headerFields,
  legacyCount,
  readBlockText as read,
} from './header-hash.ts'

const zero = (bytes: number) => `0x${'00'.repeat(bytes)}`
const emptyRoot = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'

// The first block of Ethereum.
const genesis = {
  hash: '0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3',
  parentHash: zero(32),
  sha3Uncles: '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347',
  miner: zero(20),
  stateRoot: '0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544',
  transactionsRoot: emptyRoot,
  receiptsRoot: emptyRoot,
  logsBloom: zero(256),
  difficulty: '0x400000000',
  number: '0x0',
  gasLimit: '0x1388',
  gasUsed: '0x0',
  timestamp: '0x0',
  extraData: '0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa',
  mixHash: zero(32),
  nonce: '0x0000000000000042',
  size: '0x21c',
  totalDifficulty: '0x400000000',
  transactions: [],
  uncles: [],
}

describe('the hash of a header', () => {
  test('of the first block', () => expect(checkBlock(genesis)).toBe('ok'))

  test.each(
    Object.keys(genesis).filter(
      (key) => !['size', 'totalDifficulty', 'transactions', 'uncles'].includes(key),
    ),
  )('covers %s', (key) => {
    const value = genesis[key as keyof typeof genesis] as string
    const other = value.endsWith('1') ? `${value.slice(0, -1)}2` : `${value.slice(0, -1)}1`
    expect(checkBlock({ ...genesis, [key]: other })).toBe('bad')
  })

  test.each(['miner', 'difficulty', 'extraData', 'nonce'])('with a damaged %s is bad', (key) => {
    for (const value of ['', '0xzz', 5, '0x123456789'])
      expect(checkBlock({ ...genesis, [key]: value })).toBe('bad')
  })

  test.each([
    ['a pending block', { ...genesis, hash: null }],
    ['a field of an unknown fork', { ...genesis, slotNumber: '0x1' }],
    ['a gap', { ...genesis, withdrawalsRoot: emptyRoot }],
    ['a header without mixHash', { ...genesis, mixHash: undefined, nonce: undefined }],
  ])('is unknown for %s', (_, block) => expect(checkBlock(block)).toBe('unknown'))
})

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
          isMixed: false,
        })
      }),
      { numRuns: 60 },
    )
  })

  test('is judged as its fields are when any of them is damaged, missing or unknown', () => {
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

  test.each(['', 'null', '[]', '"text"', '5', '{', '{"a":1', '{"a":1 "b":2}', '{"a":}', '{a:1}'])(
    'is not %s',
    (text) => expect(read(text)).toBeUndefined(),
  )

  test('of two equal members the last one counts', () => {
    expect(read('{"hash":"a","hash":"b","number":"0x1","number":"0x2"}')).toMatchObject({
      hash: 'b',
      number: 2,
    })
  })
})
