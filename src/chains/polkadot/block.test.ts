import { Blake2256 } from '@polkadot-api/substrate-bindings'
import { describe, expect, it } from 'vitest'
import { createByteSet } from '../../lib/bytes.ts'
import type { BalanceEvent, EventField } from './balance-event.ts'
import { createBlock } from './block.ts'
import { createPolkadotFamily } from './family.ts'
import { billOf } from './fees.ts'

const account = (number: number) => Buffer.alloc(32, number)
const event = (
  index: number,
  extrinsic: number | undefined,
  name: string,
  fields: Record<string, Buffer | bigint>,
): BalanceEvent => {
  const [pallet, kind] = name.split('.') as [string, string]
  const list: EventField[] = Object.entries(fields).map(([field, value]) =>
    typeof value === 'bigint' ? { name: field, number: value } : { name: field, account: value },
  )
  return { index, extrinsic, pallet, name: kind, fields: list }
}

describe('the fee of an extrinsic', () => {
  it('is what a runtime since 2022 says, tip included, whatever was withdrawn', () => {
    const events = [
      event(0, 2, 'Balances.Withdraw', { who: account(1), amount: 900n }),
      event(1, 2, 'Balances.Deposit', { who: account(1), amount: 200n }),
      event(2, 2, 'TransactionPayment.TransactionFeePaid', {
        who: account(1),
        actual_fee: 700n,
        tip: 50n,
      }),
    ]
    expect(billOf(events)).toEqual({ fee: 700n, payer: account(1), index: 2 })
  })

  it('is nothing of the native coin where it was paid in another asset', () => {
    const events = [
      event(0, 1, 'AssetTxPayment.AssetTxFeePaid', { who: account(1), actual_fee: 9n, tip: 0n }),
    ]
    expect(billOf(events)).toMatchObject({ fee: 0n })
    expect(billOf(events).payer).toBeUndefined()
  })

  it('is what was withdrawn first, less what came back, in runtimes before', () => {
    const events = [
      event(0, 1, 'Balances.Withdraw', { who: account(1), amount: 100n }),
      // A deposit of the call itself is no refund.
      event(1, 1, 'Balances.Deposit', { who: account(1), amount: 5n }),
      event(2, 1, 'Balances.Deposit', { who: account(1), amount: 30n }),
      event(3, 1, 'Balances.Deposit', { who: account(8), amount: 50n }),
      event(4, 1, 'Balances.Deposit', { who: account(9), amount: 20n }),
      event(5, 2, 'Balances.Withdraw', { who: account(2), amount: 40n }),
      event(6, 2, 'Balances.Deposit', { who: account(9), amount: 40n }),
    ]
    const billIn = (extrinsic: number) =>
      billOf(events.filter((one) => one.extrinsic === extrinsic))
    expect(billIn(1)).toEqual({ fee: 70n, payer: account(1), index: 0 })
    expect(billIn(2)).toEqual({ fee: 40n, payer: account(2), index: 5 })
  })

  it('is nothing of an inherent, whatever it withdraws', () => {
    const events = [event(0, 1, 'Balances.Withdraw', { who: account(1), amount: 100n })]
    expect(billOf(events, { isSigned: false })).toMatchObject({ fee: 0n })
  })
})

describe('a block', () => {
  const extrinsics = ['0x1234', '0x5678']
  const transfer = { from: account(1), to: account(2), amount: 7n }
  const parts = {
    number: 5,
    hash: account(0xaa),
    parent_hash: account(0xab),
    time: 12_000,
    native: createPolkadotFamily().native,
    extrinsics,
    events: [
      event(0, undefined, 'Balances.Transfer', transfer),
      event(3, 1, 'Balances.Transfer', { ...transfer, amount: 8n }),
      event(4, 1, 'Balances.Minted', { who: account(3), amount: 1n }),
      // Has paid, and moved nothing.
      event(5, 1, 'TransactionPayment.TransactionFeePaid', { who: account(4), actual_fee: 2n }),
    ],
  }
  const block = createBlock(parts)
  const decode = (...accounts: Buffer[]) =>
    block.decode({
      accounts: createByteSet(accounts),
      contracts: createByteSet([]),
      tokenAccount: () => [],
    })

  it('keys transfers by their event, and names them by extrinsic or by the block itself', () => {
    const { movements } = decode(account(2))
    expect(movements.map(({ ordinal, value }) => [ordinal, value])).toEqual([
      [0, 7n],
      [3, 8n],
    ])
    expect(movements[0]).toMatchObject({ transaction_hash: account(0xaa), transaction_fee: 0n })
    const hash = Buffer.from(Blake2256(Uint8Array.of(0x56, 0x78)))
    expect(movements[1]).toMatchObject({ transaction_hash: hash, transaction_fee: 2n })
  })

  it('gives what is no transfer a record without a sender, and reads the balance', () => {
    expect(decode(account(3))).toEqual({
      movements: [
        {
          ordinal: 4,
          transaction_hash: Buffer.from(Blake2256(Uint8Array.of(0x56, 0x78))),
          asset: createPolkadotFamily().native,
          from: Buffer.alloc(0),
          to: account(3),
          value: 1n,
          transaction_fee: 2n,
          detail: { source: 'extrinsic', event: 'Balances.Minted', pallet: 'Balances' },
        },
      ],
      touched: [{ address: account(3), asset: createPolkadotFamily().native }],
    })
  })

  it('gives the payer of a fee a record, without an amount where nothing else was sent', () => {
    const { movements, touched } = decode(account(4))
    expect(movements).toMatchObject([
      {
        ordinal: 5,
        from: account(4),
        to: Buffer.alloc(0),
        value: 0n,
        transaction_fee: 2n,
        detail: { pays_fee: true },
      },
    ])
    expect(touched).toMatchObject([{ address: account(4) }])
    const twice = createBlock({
      ...parts,
      events: [
        event(0, 1, 'Balances.Transfer', { ...transfer, from: account(9) }),
        event(1, 1, 'Balances.Transfer', transfer),
        event(2, 1, 'Balances.Transfer', transfer),
        event(3, 1, 'TransactionPayment.TransactionFeePaid', { who: account(1), actual_fee: 2n }),
      ],
    })
    for (const one of [account(1), account(2)]) {
      const { movements: moved } = twice.decode({
        accounts: createByteSet([one]),
        contracts: createByteSet([]),
        tokenAccount: () => [],
      })
      expect(moved.filter(({ detail }) => detail?.pays_fee).map(({ ordinal }) => ordinal)).toEqual([
        1,
      ])
    }
  })

  it('is none when an event is of an extrinsic that is not there', () => {
    expect(() => createBlock({ ...parts, extrinsics: extrinsics.slice(1) })).toThrow(
      'an extrinsic that the block has not',
    )
  })
})
