import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createByteSet } from '../../lib/bytes.ts'
import type { Movement } from '../chain.ts'
import type { BalanceEvent, EventField, EventMark } from './balance-event.ts'
import { createBlock } from './block.ts'
import { createPolkadotFamily } from './family.ts'

const account = (number: number) => Buffer.alloc(32, number + 1)
const count = 5
const everyone = Array.from({ length: count }, (_, number) => account(number))
/** Gets the fees; it is tracked too. */
const pot = 4
const signed = '0x0484'
const family = createPolkadotFamily()

type Fields = Record<string, Buffer | bigint>
type Step = { pallet: string; name: string; fields: Fields; extrinsic: number | undefined }

const blockOf = (steps: readonly Step[], extrinsics: number) => {
  const events = steps.map(({ fields, ...rest }, index): BalanceEvent => {
    const list: EventField[] = Object.entries(fields).map(([name, value]) =>
      typeof value === 'bigint' ? { name, number: value } : { name, account: value },
    )
    return { ...rest, index, fields: list }
  })
  return createBlock({
    ...{ number: 5, hash: Buffer.alloc(32, 0xaa), parent_hash: Buffer.alloc(32, 0xab), time: 1 },
    native: family.native,
    extrinsics: Array.from({ length: extrinsics }, () => signed),
    events,
    outline: () =>
      steps.map(
        ({ extrinsic, pallet, name }): EventMark => ({ phase: `${extrinsic}`, pallet, name }),
      ),
  })
}

const decode = (block: ReturnType<typeof blockOf>, accounts: readonly Buffer[]) =>
  block.decode({
    accounts: createByteSet(accounts),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  })

/** What records and fees say of an account's balance. */
const sumOf = (one: Buffer, movements: readonly Movement[]): bigint =>
  movements.reduce((sum, { from, to, value, detail, transaction_fee }) => {
    const paid = from.equals(one) && detail?.pays_fee === true ? transaction_fee : 0n
    return sum + (to.equals(one) ? value : 0n) - (from.equals(one) ? value : 0n) - paid
  }, 0n)

/** One thing that a runtime does, with its events and its changes. */
const operations = [
  'Transfer',
  'ReserveRepatriated',
  'TransferOnHold',
  'TransferAndHold',
  'Deposit',
  'Minted',
  'Restored',
  'Withdraw',
  'Burned',
  'BurnedHeld',
  'Slashed',
  'Suspended',
  'DustLost',
  'Reserved',
  'Held',
  'Locked',
] as const

const gains = new Set<string>(['Deposit', 'Minted', 'Restored'])
const keeps = new Set<string>(['Reserved', 'Held', 'Locked'])
const moves = new Set<string>([
  'Transfer',
  'ReserveRepatriated',
  'TransferOnHold',
  'TransferAndHold',
])

const operation = fc.record({
  name: fc.constantFrom(...operations),
  one: fc.nat({ max: count - 1 }),
  other: fc.nat({ max: count - 1 }),
  amount: fc.bigInt({ min: 0n, max: 1_000n }),
})

const call = fc.record({
  payer: fc.nat({ max: count - 2 }),
  withdrawn: fc.bigInt({ min: 0n, max: 200n }),
  used: fc.nat({ max: 100 }),
  isRefunded: fc.boolean(),
  saysFee: fc.boolean(),
  isPaidInAsset: fc.boolean(),
  inside: fc.array(operation, { maxLength: 4 }),
})

const script = fc.record({
  before: fc.array(operation, { maxLength: 4 }),
  calls: fc.array(call, { maxLength: 4 }),
  after: fc.array(operation, { maxLength: 4 }),
})

/** Makes the events of a script, and what they do to the balances. */
function play({
  before,
  calls,
  after,
}: typeof script extends fc.Arbitrary<infer made> ? made : never) {
  const steps: Step[] = []
  const changes = everyone.map(() => 0n)
  const change = (number: number, amount: bigint) => {
    changes[number] = changes[number]! + amount
  }
  const emit = (extrinsic: number | undefined, name: string, fields: Fields, pallet = 'Balances') =>
    steps.push({ pallet, name, fields, extrinsic })
  const run = (
    extrinsic: number | undefined,
    { name, one, other, amount }: (typeof before)[number],
  ) => {
    if (moves.has(name)) {
      change(one, -amount)
      change(other, amount)
      emit(extrinsic, name, { source: account(one), dest: account(other), amount })
      return
    }
    if (!keeps.has(name)) change(one, gains.has(name) ? amount : -amount)
    emit(extrinsic, name, { who: account(one), amount })
  }
  for (const one of before) run(undefined, one)
  for (const [extrinsic, { payer, withdrawn, used, inside, ...how }] of calls.entries()) {
    const fee = (withdrawn * BigInt(used)) / 100n
    const who = account(payer)
    if (!how.isPaidInAsset && withdrawn > 0n) {
      change(payer, -withdrawn)
      emit(extrinsic, 'Withdraw', { who, amount: withdrawn })
    }
    for (const one of inside) run(extrinsic, one)
    if (how.isPaidInAsset) {
      emit(extrinsic, 'AssetTxFeePaid', { who, actual_fee: 5n, tip: 0n }, 'AssetTxPayment')
      continue
    }
    if (how.isRefunded && fee < withdrawn) {
      change(payer, withdrawn - fee)
      emit(extrinsic, 'Deposit', { who, amount: withdrawn - fee })
    }
    if (fee > 0n) {
      change(pot, fee)
      emit(extrinsic, 'Deposit', { who: account(pot), amount: fee })
    }
    if (how.saysFee)
      emit(extrinsic, 'TransactionFeePaid', { who, actual_fee: fee, tip: 0n }, 'TransactionPayment')
  }
  for (const one of after) run(undefined, one)
  return { steps, changes, extrinsics: calls.length }
}

describe('records and fees', () => {
  it('add up to the change of every balance, whatever events a block has', () => {
    fc.assert(
      fc.property(script, (made) => {
        const { steps, changes, extrinsics } = play(made)
        const block = blockOf(steps, extrinsics)
        for (const [number, one] of everyone.entries()) {
          const { movements, touched } = decode(block, [one])
          expect(sumOf(one, movements)).toBe(changes[number])
          if (changes[number] !== 0n)
            expect(touched.map(({ address }) => address)).toContainEqual(one)
        }
        // A record does not depend on which accounts are tracked, and its place is unique.
        const all = decode(block, everyone).movements
        expect(new Set(all.map(({ ordinal }) => ordinal)).size).toBe(all.length)
        for (const one of everyone)
          expect(decode(block, [one]).movements).toEqual(
            all.filter(({ from, to }) => from.equals(one) || to.equals(one)),
          )
      }),
      { numRuns: 500 },
    )
  }, 60_000)

  it('show what is no transfer with an empty end and the reason', () => {
    const [who, other] = [account(0), account(1)]
    const steps: Step[] = [
      { pallet: 'Balances', name: 'Minted', fields: { who, amount: 7n }, extrinsic: 0 },
      { pallet: 'Staking', name: 'Rewarded', fields: {}, extrinsic: 0 },
      { pallet: 'Balances', name: 'Burned', fields: { who, amount: 3n }, extrinsic: 0 },
      {
        ...{ pallet: 'Balances', name: 'TransferOnHold', extrinsic: undefined },
        fields: { source: who, dest: other, amount: 2n },
      },
    ]
    expect(decode(blockOf(steps, 1), [who]).movements).toMatchObject([
      {
        ...{ from: Buffer.alloc(0), to: who, value: 7n },
        detail: { source: 'extrinsic', event: 'Balances.Minted', pallet: 'Staking' },
      },
      {
        ...{ from: who, to: Buffer.alloc(0), value: 3n },
        detail: { source: 'extrinsic', event: 'Balances.Burned', pallet: 'Balances' },
      },
      {
        ...{ from: who, to: other, value: 2n, transaction_hash: Buffer.alloc(32, 0xaa) },
        detail: { source: 'system', event: 'Balances.TransferOnHold', pallet: 'Balances' },
      },
    ])
  })
})
