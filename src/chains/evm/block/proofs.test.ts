import fc from 'fast-check'
import { type Hex, keccak256, serializeTransaction, toHex, toRlp } from 'viem'
import { serializeTransaction as serializeDeposit } from 'viem/op-stack'
import { describe, expect, it } from 'vitest'
import type { RawReceipt, RawTransaction } from '../codec/raw.ts'
import { encodeReceipt } from '../codec/receipts.ts'
import { encodeTransaction } from '../codec/transactions.ts'
import { createListTrie, listRoot } from '../codec/trie.ts'

const hex = (options: fc.IntArrayConstraints) => fc.uint8Array(options).map((it) => toHex(it))
const of = (size: number) => hex({ minLength: size, maxLength: size })
const big = (bits: number) => fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n })
const upper = (digits: string, isUpper: boolean) => (isUpper ? digits.toUpperCase() : digits)

type Node = Hex | readonly Node[]
type Pair = { path: string; value: Hex }

/** The trie of the yellow paper by the letter, node by node, in the words of another library. */
function plainRoot(values: readonly Hex[]): Hex {
  const keyOf = (index: number) => toRlp(index === 0 ? '0x' : toHex(index)).slice(2)
  const pairs = values.map((value, index) => ({ path: keyOf(index), value }))
  return keccak256(pairs.length === 0 ? toRlp('0x') : toRlp(node(pairs) as Hex))
}

function node(pairs: readonly Pair[]): Node {
  const [first] = pairs
  if (pairs.length === 1) return [compact(first!.path, true), first!.value]
  let shared = 0
  while (pairs.every(({ path }) => path[shared] === first!.path[shared])) shared++
  if (shared > 0)
    return [
      compact(first!.path.slice(0, shared), false),
      short(node(pairs.map(({ path, value }) => ({ path: path.slice(shared), value })))),
    ]
  const children = [...'0123456789abcdef'].map((digit) => {
    const some = pairs.filter(({ path }) => path[0] === digit)
    const rest = some.map(({ path, value }) => ({ path: path.slice(1), value }))
    return rest.length > 0 ? short(node(rest)) : '0x'
  })
  return [...children, '0x'] as Node
}

const short = (one: Node): Node => {
  const encoded = toRlp(one as Hex)
  return encoded.length < 66 ? one : keccak256(encoded)
}
const compact = (path: string, isLeaf: boolean): Hex =>
  path.length % 2 ? `0x${isLeaf ? 3 : 1}${path}` : `0x${isLeaf ? 20 : '00'}${path}`

describe('the root of a list', () => {
  const digits = (values: readonly Hex[]) => values.map((value) => value.slice(2))

  it('is that of the trie made node by node, for values of any length', () => {
    const values = fc.oneof(
      hex({ minLength: 1, maxLength: 3 }),
      hex({ minLength: 1, maxLength: 90 }),
    )
    fc.assert(
      fc.property(fc.array(values, { maxLength: 20 }), (list) => {
        expect(listRoot(digits(list))).toBe(plainRoot(list))
      }),
      { numRuns: 500 },
    )
  })

  it.each([1, 2, 16, 17, 127, 128, 129, 130, 255, 256, 257, 300, 700])('of %i values', (count) => {
    const made = Array.from(
      { length: count },
      (_, index): Hex => toHex(new Uint8Array(1 + ((index * 37) % 400)).fill(index + 1)),
    )
    const trie = createListTrie(digits(made))
    expect(trie.root).toBe(plainRoot(made))
    for (const [index, value] of made.entries()) expect(toHex(trie.value(index))).toBe(value)
  })

  it('takes values of more than 64 KiB', () => {
    const made = [70_000, 3, 300].map((size) => toHex(new Uint8Array(size).fill(7)))
    expect(listRoot(digits(made))).toBe(plainRoot(made))
  })

  it('is not computed from invalid hex', () => {
    for (const wrong of ['0g', '0', 'a b', '00\n'])
      expect(() => listRoot(['00'.repeat(40), wrong])).toThrow('')
  })
})

describe('the encoding of a transaction is the one that viem signs', () => {
  const signature = { r: big(256), s: big(255), parity: fc.constantFrom(0, 1) }
  const base = {
    chainId: fc.integer({ min: 1, max: 2 ** 40 }),
    nonce: fc.maxSafeNat(),
    gas: big(63),
    to: fc.option(of(20), { nil: null }),
    value: big(256),
    input: hex({ maxLength: 300 }),
  }
  const fees = { maxFeePerGas: big(100).map((it) => it + 2n ** 60n), maxPriorityFeePerGas: big(60) }
  const accessList = fc.array(
    fc.record({ address: of(20), storageKeys: fc.array(of(32), { maxLength: 3 }) }),
    { maxLength: 3 },
  )
  const word = (number: bigint): Hex => toHex(number, { size: 32 })
  const raw = (fields: object, type: number): RawTransaction => {
    const written = Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'bigint' || typeof value === 'number' ? toHex(value) : value,
    ])
    return { ...Object.fromEntries(written), type: toHex(type) }
  }
  const same = (ours: RawTransaction, theirs: Hex) =>
    expect(`0x${encodeTransaction(ours)?.toLowerCase()}`).toBe(theirs)

  it('without a type', () => {
    fc.assert(
      fc.property(fc.record({ ...base, ...signature, gasPrice: big(90) }), (one) => {
        const v = BigInt(one.chainId) * 2n + 35n + BigInt(one.parity)
        const theirs = serializeTransaction({ ...one, data: one.input, type: 'legacy' } as never, {
          r: word(one.r),
          s: word(one.s),
          v,
        })
        same(raw({ ...one, v }, 0), theirs)
      }),
    )
  })

  it.each([1, 2, 3, 4] as const)('of type %i', (type) => {
    const extras: Record<typeof type, Record<string, fc.Arbitrary<unknown>>> = {
      1: { gasPrice: big(90), accessList },
      2: { ...fees, accessList },
      3: {
        ...fees,
        accessList,
        to: of(20),
        maxFeePerBlobGas: big(80),
        blobVersionedHashes: fc.array(
          of(31).map((it): Hex => `0x01${it.slice(2)}`),
          { minLength: 1, maxLength: 4 },
        ),
      },
      4: {
        ...fees,
        accessList,
        to: of(20),
        authorizationList: fc.array(
          fc.record({
            address: of(20),
            chainId: fc.integer({ min: 0, max: 9 }),
            nonce: fc.nat(),
            yParity: fc.constantFrom(0, 1),
            r: big(256).map(word),
            s: big(255).map(word),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      },
    }
    const names = { 1: 'eip2930', 2: 'eip1559', 3: 'eip4844', 4: 'eip7702' } as const
    const one = fc.record({ ...base, ...signature, ...extras[type] } as typeof base &
      typeof signature)
    fc.assert(
      fc.property(one, fc.boolean(), (one, isUpper) => {
        const theirs = serializeTransaction(
          { ...one, data: one.input, type: names[type] } as never,
          { r: word(one.r), s: word(one.s), yParity: one.parity },
        )
        const authorizationList = (one as { authorizationList?: object[] }).authorizationList?.map(
          (item) => raw(item, 0),
        )
        const input = `0x${upper(one.input.slice(2), isUpper)}`
        same(raw({ ...one, input, authorizationList, yParity: one.parity }, type), theirs)
      }),
    )
  })

  it('that comes from the other chain', () => {
    const deposit = fc.record({
      sourceHash: of(32),
      from: of(20),
      to: fc.option(of(20), { nil: undefined }),
      mint: fc.option(big(200), { nil: undefined }),
      value: big(256),
      gas: big(60),
      isSystemTx: fc.boolean(),
      input: hex({ maxLength: 100 }),
    })
    fc.assert(
      fc.property(deposit, ({ input, ...one }) => {
        const theirs = serializeDeposit({ ...one, data: input, type: 'deposit' } as never)
        same(raw({ ...one, input, nonce: 0 }, 0x7e), theirs)
      }),
    )
  })
})

it('the encoding of a receipt is RLP of its fields', () => {
  const log = fc.record({
    address: of(20),
    topics: fc.array(of(32), { maxLength: 4 }),
    data: hex({ maxLength: 200 }),
  })
  const receipt = fc.record({
    type: fc.constantFrom(undefined, 0, 1, 2, 3, 4),
    status: fc.option(fc.constantFrom(0, 1), { nil: undefined }),
    root: of(32),
    gas: fc.maxSafeNat(),
    logsBloom: of(256),
    logs: fc.array(log, { maxLength: 5 }),
  })
  const number = (value: number): Hex => (value === 0 ? '0x' : toHex(value))
  fc.assert(
    fc.property(receipt, ({ type, status, root, gas, logsBloom, logs }) => {
      const fields = toRlp([
        status === undefined ? root : number(status),
        number(gas),
        logsBloom,
        logs.map(({ address, topics, data }) => [address, topics, data]),
      ])
      const ours = encodeReceipt({
        root,
        cumulativeGasUsed: toHex(gas),
        logsBloom,
        logs,
        ...(type !== undefined && { type: toHex(type) }),
        ...(status !== undefined && { status: toHex(status) }),
      } as unknown as RawReceipt)
      expect(ours).toBe((type ? toHex(type, { size: 1 }).slice(2) : '') + fields.slice(2))
    }),
  )
})
