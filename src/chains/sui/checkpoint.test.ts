import { GrpcTypes } from '@mysten/sui/grpc'
import { describe, expect, it } from 'vitest'
import { encodeBase58 } from '../../lib/base58.ts'
import { createByteSet } from '../../lib/bytes.ts'
import { toBlock } from './checkpoint.ts'
import { suiType } from './records.ts'

const account = (number: number) => Buffer.alloc(32, number)
const hex = (bytes: Buffer) => `0x${bytes.toString('hex')}`
const [me, you, other] = [account(1), account(2), account(3)] as const
const digest = (number: number) => encodeBase58(account(number))
const coral = `0x${'9'.padStart(64, '0')}::coral::CORAL`

type Changes = [Buffer | string, bigint | string, string?][]
const transaction = (
  number: number,
  changes: Changes,
  more: Partial<{ success: boolean; sender: Buffer; payer: Buffer; gas: bigint }> = {},
) => {
  const { success = true, sender = me, payer = sender, gas = 0n } = more
  return GrpcTypes.ExecutedTransaction.create({
    digest: digest(number),
    transaction: { sender: hex(sender), gasPayment: { owner: hex(payer), objects: [] } },
    effects: GrpcTypes.TransactionEffects.create({
      status: { success },
      gasUsed: { computationCost: gas, storageCost: 0n, storageRebate: 0n },
    }),
    balanceChanges: changes.map(([address, amount, coinType = suiType]) => ({
      address: typeof address === 'string' ? address : hex(address),
      coinType,
      amount: String(amount),
    })),
  })
}
const block = (...transactions: GrpcTypes.ExecutedTransaction[]) =>
  toBlock(
    GrpcTypes.Checkpoint.create({
      sequenceNumber: 7n,
      digest: digest(70),
      summary: {
        previousDigest: digest(69),
        timestamp: { seconds: 1_780_000_000n, nanos: 250_000_000 },
        commitments: [],
      },
      transactions,
    }),
  )
const tracked = (...accounts: Buffer[]) => ({
  accounts: createByteSet(accounts),
  contracts: createByteSet([]),
  tokenAccount: () => [],
})

describe('a checkpoint', () => {
  it('has its place in the chain', () => {
    expect(block()).toMatchObject({
      number: 7,
      hash: account(70),
      parent_hash: account(69),
      time: 1_780_000_000_250,
    })
  })

  it('sums up what one address gained and lost of one coin', () => {
    const { touched, movements } = block(
      transaction(1, [
        [me, -10n],
        [you, 10n],
      ]),
      transaction(
        2,
        [
          [you, -4n],
          [me, 4n],
        ],
        { sender: you },
      ),
      transaction(3, [
        [me, -6n, coral],
        [other, 6n, coral],
      ]),
      transaction(
        4,
        [
          [other, -5n],
          [you, 5n],
        ],
        { sender: other },
      ),
    ).decode(tracked(me))
    expect(touched).toMatchObject([
      { address: me, delta: -6n, asset: { contract_address: Buffer.alloc(0) } },
      { address: me, delta: -6n, asset: { contract_address: Buffer.from(coral) } },
    ])
    expect(movements.map(({ value }) => value)).toEqual([10n, 4n, 6n])
  })

  it('numbers its records independent of tracked accounts', () => {
    const made = block(
      transaction(1, [
        [me, -10n],
        [you, 10n],
      ]),
      transaction(
        2,
        [
          [other, -3n],
          [you, 3n],
        ],
        { sender: other },
      ),
    )
    const all = made.decode(tracked(me, you, other)).movements
    for (const one of [me, you, other])
      expect(all).toEqual(expect.arrayContaining([...made.decode(tracked(one)).movements]))
    expect(made.decode(tracked(account(99)))).toMatchObject({ movements: [], touched: [] })
  })

  it('gives a failed transaction to its sender, also where another account paid', () => {
    const made = block(transaction(1, [[other, -9n]], { success: false, payer: other, gas: 9n }))
    expect([...made.accounts(createByteSet([]))]).toEqual([other, me])
    const { movements, touched } = made.decode(tracked(me, other))
    expect(movements).toMatchObject([
      { from: me, to: Buffer.alloc(0), value: 0n, failed: true, transaction_fee: 9n },
      { from: other, value: 0n, failed: true, transaction_fee: 9n, detail: { pays_fee: true } },
    ])
    expect(touched).toMatchObject([{ address: other, delta: -9n }])
  })

  it('credits a payer that is paid exactly the cost of its gas', () => {
    const made = block(transaction(1, [[you, -9n]], { sender: you, payer: me, gas: 9n }))
    expect([...made.accounts(createByteSet([]))]).toEqual([you, me])
    const { movements, touched } = made.decode(tracked(me))
    expect(movements).toMatchObject([
      { from: you, to: me, value: 9n },
      { from: me, value: 0n, transaction_fee: 9n, detail: { pays_fee: true } },
    ])
    expect(touched).toEqual([])
  })

  it('counts and omits unreadable entries', () => {
    const { movements, unknown_kinds } = block(
      transaction(1, [
        [me, -10n],
        [you, 10n],
        ['0x12', 3n],
        [you, 'many'],
        [me, 1n, 'not a coin'],
      ]),
    ).decode(tracked(me))
    expect(movements).toMatchObject([{ from: me, to: you, value: 10n }])
    expect(unknown_kinds).toEqual({ balance_change: 3 })
  })

  it('is refused without number, time or digests', () => {
    for (const bad of [
      { digest: digest(1) },
      {
        sequenceNumber: 1n,
        digest: '0',
        summary: { timestamp: { seconds: 1n, nanos: 0 }, commitments: [] },
      },
    ])
      expect(() => toBlock(GrpcTypes.Checkpoint.create(bad))).toThrow()
  })
})
