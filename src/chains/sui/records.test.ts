import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Change, recordsOf, type Settled, suiType } from './records.ts'

const account = (number: number) => `0x${number.toString(16).padStart(64, '0')}`
const coral = `${account(9)}::coral::CORAL`
const [me, you, sponsor] = [account(1), account(2), account(3)]
const bill = 1_997_880n

const settle = (settled: Partial<Settled> & { changes: Change[] }): string[] =>
  recordsOf({ sender: me, payer: me, gas: bill, success: true, ...settled }).map(
    ({ coinType, from, to, value, pays_fee }) =>
      `${from.slice(-1) || '-'} > ${to.slice(-1) || '-'} ${value} ${coinType.split('::').at(-1)}${pays_fee ? ' +fee' : ''}`,
  )
const sui = (address: string, amount: bigint): Change => ({ address, coinType: suiType, amount })
const token = (address: string, amount: bigint): Change => ({ address, coinType: coral, amount })

describe('the records of a transaction', () => {
  it('of a payment: the amount, without the gas', () => {
    expect(settle({ changes: [sui(me, -123n - bill), sui(you, 123n)] })).toEqual([
      '1 > 2 123 SUI +fee',
    ])
  })
  it('of a sponsored payment: the sponsor has one for the fee', () => {
    const changes = [sui(me, -5n), sui(you, 5n), sui(sponsor, -bill)]
    expect(settle({ payer: sponsor, changes })).toEqual(['1 > 2 5 SUI', '3 > - 0 SUI +fee'])
  })
  it('of a payment to many: one each', () => {
    const changes = [
      sui(me, -60n - bill),
      sui(account(5), 10n),
      sui(account(6), 20n),
      sui(you, 30n),
    ]
    expect(settle({ changes })).toEqual(['1 > 2 30 SUI +fee', '1 > 6 20 SUI', '1 > 5 10 SUI'])
  })
  it('of a swap: into a pool, and out of it', () => {
    const changes = [sui(me, -1_000n - bill), token(me, 77n)]
    expect(settle({ changes })).toEqual(['1 > - 1000 SUI +fee', '- > 1 77 CORAL'])
  })
  it('of tokens alone: one of their sender for the fee, in the coin that pays it', () => {
    const changes = [token(me, -7n), token(you, 7n), sui(me, -bill)]
    expect(settle({ changes })).toEqual(['1 > 2 7 CORAL', '1 > - 0 SUI +fee'])
  })
  it('of a call that moves nothing: one for the fee', () => {
    expect(settle({ changes: [sui(me, -bill)] })).toEqual(['1 > - 0 SUI +fee'])
  })
  it('of a call that gives back more storage than it uses: one for what came back', () => {
    expect(settle({ gas: -99n, changes: [sui(me, 99n)] })).toEqual(['- > 1 99 SUI'])
    const changes = [sui(me, -5n + 99n), sui(you, 5n)]
    expect(settle({ gas: -99n, changes })).toEqual(['1 > 2 5 SUI', '- > 1 99 SUI'])
  })
  it('of a transaction without gas that moves nothing: none', () => {
    expect(settle({ gas: 0n, changes: [] })).toEqual([])
  })
  it('of a failure: one without an amount, of the sender', () => {
    expect(settle({ success: false, changes: [sui(me, -bill)] })).toEqual(['1 > - 0 SUI +fee'])
    const sponsored = settle({ success: false, payer: sponsor, changes: [sui(sponsor, -bill)] })
    expect(sponsored).toEqual(['1 > - 0 SUI', '3 > - 0 SUI +fee'])
  })

  const changesOf = fc.uniqueArray(
    fc.record({
      address: fc.integer({ min: 1, max: 6 }).map(account),
      coinType: fc.constantFrom(suiType, suiType, coral, `${account(9)}::kelp::KELP`),
      amount: fc.bigInt(-1_000n, 1_000n).filter((amount) => amount !== 0n),
    }),
    { selector: ({ address, coinType }) => address + coinType, maxLength: 8 },
  )
  const settled = fc.record({
    sender: fc.constant(me),
    payer: fc.integer({ min: 1, max: 3 }).map(account),
    gas: fc.bigInt(-100n, 100n),
    success: fc.constant(true),
    changes: changesOf,
  })
  const numRuns = 20_000

  it('and its fee, counted once, are the changes again, exactly, over 20,000 random transactions', () => {
    fc.assert(
      fc.property(settled, (one) => {
        const sums = new Map<string, bigint>()
        const add = (address: string, coinType: string, amount: bigint) => {
          const sum = (sums.get(address + coinType) ?? 0n) + amount
          if (sum === 0n) sums.delete(address + coinType)
          else sums.set(address + coinType, sum)
        }
        const records = recordsOf(one)
        let fees = 0
        for (const { coinType, from, to, value, pays_fee } of records) {
          if ((value <= 0n && !pays_fee) || (from === '' && to === '') || from === to) return false
          if (pays_fee) {
            fees++
            add(from, coinType, -one.gas)
          }
          if (from !== '') add(from, coinType, -value)
          if (to !== '') add(to, coinType, value)
        }
        for (const { address, coinType, amount } of one.changes) add(address, coinType, -amount)
        return sums.size === 0 && fees <= 1 && records.length <= one.changes.length + 2
      }),
      { numRuns },
    )
  })

  it('do not depend on the order in which a node gives the changes', () => {
    fc.assert(
      fc.property(
        settled,
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (one, keys) => {
          const shuffled = one.changes
            .map((change) => ({ change, key: keys.next().value as number }))
            .toSorted((a, b) => a.key - b.key)
            .map(({ change }) => change)
          expect(recordsOf({ ...one, changes: shuffled })).toEqual(recordsOf(one))
        },
      ),
      { numRuns: 500 },
    )
  })
})
