import fc from 'fast-check'
import { type Hex, keccak256, toHex, toRlp } from 'viem'
import { describe, expect, it } from 'vitest'
import { createCallees, createNamedAddresses } from '../block/names.ts'
import { nativeEffects } from '../block/native.ts'
import type { ProofRules } from '../block/proof.ts'
import { addressOf, stubBlock } from '../testing/stub-chain.ts'
import { readBlock, whyRefused } from './header.ts'
import { hashOfHeader } from './header-hash.ts'
import { type ReadTransaction, toQuantity } from './raw.ts'
import { provesReceipts } from './receipts.ts'
import { encodeTransaction } from './transactions.ts'
import { listRoot } from './trie.ts'

const rulesOf = (...types: number[]): ProofRules => ({
  proof: 'root',
  unproven_types: new Set(types),
})

const hex = (size: number) =>
  fc.uint8Array({ minLength: size, maxLength: size }).map((it) => toHex(it))
const big = fc.bigInt({ min: 0n, max: 2n ** 96n })
const trimmed = (value: bigint | undefined): Hex => (value ? toHex(value) : '0x')
const written = (fields: Record<string, bigint | undefined>) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, toQuantity(value)]],
    ),
  )

/** A transaction by the rules of a chain: what its nodes show, what its root commits to, and its receipt. */
type Made = {
  fields: Record<string, unknown>
  list: readonly Hex[]
  hash: Hex
  receipt: object
  /** What the encoding of the receipt has beside the usual fields. */
  committed?: readonly Hex[]
}
const madeOf = (
  fields: Record<string, unknown>,
  list: readonly Hex[],
  rest: Pick<Made, 'receipt' | 'committed'>,
): Made => ({ fields, list, hash: keccak256(`0x7e${toRlp(list).slice(2)}`), ...rest })

/** L1MessageTx of scroll-tech/go-ethereum and morph-l2/go-ethereum, core/types/l1_message_tx.go. */
const message = fc
  .record({ from: hex(20), to: hex(20), input: hex(37), queueIndex: big, gas: big, value: big })
  .map(({ from, to, input, queueIndex, gas, value }): Made => {
    const list = [trimmed(queueIndex), trimmed(gas), to, trimmed(value), input, from]
    const fields = { from, to, input, sender: from, ...written({ queueIndex, gas, value }) }
    return madeOf(fields, list, { receipt: { l1Fee: '0x0' } })
  })

const deposit = fc.record({
  ...{ sourceHash: hex(32), from: hex(20), to: fc.option(hex(20), { nil: null }) },
  ...{ input: hex(60), value: big, gas: big, isSystemTx: fc.boolean() },
  mint: fc.option(big, { nil: undefined }),
})
type Deposit = typeof deposit extends fc.Arbitrary<infer of> ? of : never
const leading = ({ sourceHash, from, to, mint, value, gas }: Deposit) => [
  ...[sourceHash, from, to ?? '0x'],
  ...[mint, value, gas].map(trimmed),
]
const shown = ({ sourceHash, from, to, input, isSystemTx, ...numbers }: Deposit) => ({
  ...{ sourceHash, from, to, input },
  ...(isSystemTx && { isSystemTx }),
  ...written({ mint: numbers.mint, value: numbers.value, gas: numbers.gas }),
})
const system = ({ isSystemTx }: Deposit): Hex => (isSystemTx ? '0x01' : '0x')

/** DepositTx of ethereum-optimism/op-geth, core/types/deposit_tx.go. */
const op = deposit.map((one) =>
  madeOf(shown(one), [...leading(one), system(one), one.input], {
    receipt: { depositNonce: '0x5', depositReceiptVersion: '0x1' },
    committed: ['0x05', '0x01'],
  }),
)

/** DepositTx of mantlenetworkio/op-geth; its nodes leave out what is nil, and `ethTxValue` is optional. */
const mantle = fc
  .record({
    one: deposit,
    ethValue: fc.option(big, { nil: undefined }),
    ethTxValue: fc.option(big, { nil: undefined }),
  })
  .map(({ one, ethValue, ethTxValue }): Made => {
    const last = ethTxValue === undefined ? [] : [trimmed(ethTxValue)]
    const fields = { ...shown(one), ...written({ ethValue, ethTxValue }) }
    const list = [...leading(one), system(one), trimmed(ethValue), one.input, ...last]
    return madeOf(fields, list, { receipt: { depositNonce: '0x5' } })
  })

/** KromaDepositTx of kroma-network/go-ethereum, core/types/deposit_tx_kroma.go. */
const kroma = deposit.map((one) =>
  madeOf(shown({ ...one, isSystemTx: false }), [...leading(one), one.input], {
    receipt: { depositNonce: '0x5' },
  }),
)

const digitsOf = (type: string, fields: readonly unknown[]): string =>
  type + toRlp(fields as Hex[]).slice(2)

/** A block in which transactions from the other chain stand before a usual one; its roots are made by their rules. */
function blockOf(made: readonly Made[]) {
  const { block, receipts, number } = stubBlock([
    ...made.map(({ fields, receipt }) => ({
      type: '0x7e',
      transaction: { nonce: '0x0', r: '0x0', s: '0x0', ...fields },
      receipt,
    })),
    { value: 3n },
  ])
  const usual = block.transactions.at(-1)!
  const sent = [...made.map(({ list }) => digitsOf('7e', list)), encodeTransaction(usual)!]
  const done = receipts.map(({ cumulativeGasUsed, logsBloom }, index) =>
    digitsOf(made[index] ? '7e' : '02', [
      ...['0x01', cumulativeGasUsed, logsBloom, []],
      ...(made[index]?.committed ?? []),
    ]),
  )
  const transactions = block.transactions.map((one, index) => ({
    ...one,
    hash: made[index]?.hash ?? one.hash,
  }))
  const roots = { transactionsRoot: listRoot(sent), receiptsRoot: listRoot(done) }
  const hash = hashOfHeader({ ...block, ...roots })
  const named = receipts.map((one, index) => ({
    ...one,
    transactionHash: transactions[index]!.hash,
    blockHash: hash,
  }))
  return { block: { ...block, ...roots, hash, transactions }, receipts: named, number }
}

describe.each(Object.entries({ message, op, mantle, kroma }))('type 0x7e as %s', (_, kind) => {
  it('is proved by hash and roots, and its receipts too', () => {
    fc.assert(
      fc.property(fc.array(kind, { minLength: 1, maxLength: 5 }), (made) => {
        const { block, receipts, number } = blockOf(made)
        const read = readBlock(block, { number, rules: rulesOf() })
        made.forEach(({ hash }, index) => {
          expect(toHex(read!.hashOf(index))).toBe(hash)
        })
        expect(provesReceipts(read!, receipts, rulesOf())).toBe(true)
      }),
    )
  })

  it('is refused where a node changed what it does', () => {
    const change = fc.constantFrom('from', 'to', 'value', 'input')
    fc.assert(
      fc.property(kind, change, (made, name) => {
        const { block, number } = blockOf([made])
        const [first, ...rest] = block.transactions
        const values = { from: addressOf(77), to: addressOf(77), value: '0x7b', input: '0x77' }
        const forged = { ...first!, [name]: values[name] }
        const transactions = [forged, ...rest]
        const read = readBlock({ ...block, transactions }, { number, rules: rulesOf() })
        expect(read).toBeUndefined()
      }),
    )
  })
})

// What one of the lists has, or what is read of other types.
const anyFields = {
  ...{ mint: '0x9', isSystemTx: true, sourceHash: `0x${'77'.repeat(32)}`, queueIndex: '0x9' },
  ...{ ethValue: '0x9', ethTxValue: '0x9', sender: addressOf(77), depositValue: '0x9' },
  ...{ retryValue: '0x9', refundTo: addressOf(77), feeTokenID: '0x1', feeCurrency: addressOf(77) },
}
const foreign = fc
  .subarray(Object.keys(anyFields) as (keyof typeof anyFields)[], { maxLength: 3 })
  .map((names) => Object.fromEntries(names.map((name) => [name, anyFields[name]])))

it.each(Object.entries({ message, op, mantle, kroma }))(
  'a field that the list of type 0x7e as %s does not have changes nothing',
  (_, kind) => {
    let count = 0
    const check = fc.property(kind, foreign, (made, added) => {
      const { block, receipts, number } = blockOf([made])
      const [first, ...rest] = block.transactions
      const read = (transactions: typeof rest) =>
        readBlock({ ...block, transactions }, { number, rules: rulesOf() })?.transactions[0]
      const effectsOf = (transaction: ReadTransaction) =>
        nativeEffects(
          { transaction, receipt: receipts[0]!, internal: [] },
          { addresses: createNamedAddresses(), callees: createCallees() },
        )
      const honest = read([first!, ...rest])!
      const forged = read([{ ...first!, ...added }, ...rest])
      // An item of the list that is another one is refused.
      if (!forged) return
      count++
      expect(effectsOf(forged)).toEqual(effectsOf(honest))
    })
    fc.assert(check, { numRuns: 100 })
    expect(count).toBeGreaterThan(5)
  },
)

it('a message needs no nonce, which some nodes leave out', () => {
  const [made] = fc.sample(message, { numRuns: 1, seed: 1 })
  const { block, number } = blockOf([made!])
  const [first, ...rest] = block.transactions
  const { nonce: _, ...without } = first!
  const read = readBlock(
    { ...block, transactions: [without, ...rest] },
    { number, rules: rulesOf() },
  )
  expect(toHex(read!.hashOf(0))).toBe(made!.hash)
})

describe('type 0x7e in an encoding that is not known', () => {
  const fields = { from: addressOf(1), to: addressOf(2), input: '0x', value: '0x5', gas: '0x9' }
  const list = [fields.to as Hex, fields.from as Hex, '0x05' as const]
  const made = madeOf(fields, list, { receipt: {} })
  const { block, receipts, number } = blockOf([made])

  it('is refused with the setting to choose', () => {
    expect(readBlock(block, { number, rules: rulesOf() })).toBeUndefined()
    expect(whyRefused(block, rulesOf())).toBe(
      'a transaction of type 0x7e does not have its hash in any encoding that is known; if other nodes send the same, list 126 in `unproven_types`',
    )
  })

  it('is taken where the operator accepts it unproven', () => {
    const rules = rulesOf(0x7e)
    const read = readBlock(block, { number, rules })
    expect(toHex(read!.hashOf(0))).toBe(made.hash)
    expect(provesReceipts(read!, receipts, rules)).toBe(true)
  })
})
