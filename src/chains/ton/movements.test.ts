import { Address, beginCell, type Cell, comment, external, internal, type Message } from '@ton/core'
import { describe, expect, it } from 'vitest'
import { nativeMovements, tokenMovements } from './movements.ts'
import type { TonTransaction } from './transaction.ts'

const owner = Buffer.alloc(33, 1)
const asset = {
  asset_type: 'ASSET_TYPE_T' as const,
  contract_address: Buffer.alloc(33, 2),
  token_id: 0n,
}
const sender = new Address(0, Buffer.alloc(32, 3))
const place = {
  ordinal: 0,
  mc_seq_no: 9,
  block: { workchain: 0, shard: '-9223372036854775808', seqno: 5, root_hash: '', file_hash: '' },
}

const received = (body: Cell, fields: { bounced?: boolean; isDone?: boolean } = {}) => {
  const message = internal({ to: sender, value: 1n, body }) as Message
  if (message.info.type !== 'internal') throw new Error('an internal message was expected')
  message.info.src = sender
  message.info.bounced = fields.bounced ?? false
  const transaction: TonTransaction = {
    hash: Buffer.alloc(32, 7),
    lt: 1n,
    time: 1_000,
    fee: 5n,
    in: { hash: Buffer.alloc(32, 8), message },
    out: [],
    isReturned: false,
    isDone: fields.isDone ?? true,
    external_hash: undefined,
  }
  return tokenMovements(transaction, place, { owner, asset }, 0)
}

const internalTransfer = beginCell()
  .storeUint(0x178d4519, 32)
  .storeUint(1, 64)
  .storeCoins(250n)
  .storeAddress(sender)
  .storeAddress(null)
  .storeCoins(0)
  .storeBit(true)
  .storeRef(comment('invoice'))
  .endCell()

describe('what an account pays', () => {
  const outside = {
    hash: Buffer.alloc(32, 8),
    message: external({ to: sender, body: beginCell().endCell() }) as Message,
  }
  const paid = {
    hash: Buffer.alloc(32, 9),
    message: internal({ to: sender, value: 4n }) as Message,
  }
  if (paid.message.info.type === 'internal') paid.message.info.src = sender
  const account = Buffer.alloc(33, 4)
  const of = (fields: Partial<TonTransaction>) =>
    nativeMovements(
      {
        ...{
          hash: Buffer.alloc(32, 7),
          lt: 1n,
          time: 1_000,
          fee: 5n,
          isReturned: false,
          isDone: true,
        },
        ...{ in: outside, out: [], external_hash: Buffer.alloc(32, 6), ...fields },
      },
      place,
      { asset, account },
    )

  it('counts with its first message', () => {
    const fees = (movements: ReturnType<typeof of>) =>
      movements.map(({ value, only, detail }) => [only, value, detail?.pays_fee])
    expect(fees(of({ out: [paid, paid] }))).toEqual([
      ['from', 4n, true],
      ['from', 4n, false],
    ])
    expect(fees(of({ in: paid, out: [paid] }))).toEqual([
      ['to', 4n, true],
      ['from', 4n, false],
    ])
  })

  it('has a record without an amount where no message was sent or received inside the chain', () => {
    expect(of({ isDone: false })).toMatchObject([
      {
        ...{ from: account, to: Buffer.alloc(0), value: 0n, only: 'from', transaction_fee: 5n },
        detail: { status: 'failed', pays_fee: true },
      },
    ])
    expect(of({ fee: 0n })).toEqual([])
  })
})

describe('what a jetton wallet does', () => {
  it('is an incoming transfer from the other owner, with the comment', () => {
    expect(received(internalTransfer)).toMatchObject([
      {
        ...{ from: Buffer.concat([Buffer.alloc(1), sender.hash]), to: owner, value: 250n },
        ...{ only: 'to', transaction_fee: 5n, asset },
        detail: {
          message: 'invoice',
          status: 'success',
          bounced: 'false',
          shard: '8000000000000000',
        },
      },
    ])
  })

  it('is nothing when it did not run to the end, or only coins came', () => {
    expect(received(internalTransfer, { isDone: false })).toEqual([])
    expect(received(beginCell().endCell())).toEqual([])
  })

  it('brings tokens back, whichever form the bounce has', () => {
    const old = beginCell()
      .storeUint(0xffffffff, 32)
      .storeUint(0x178d4519, 32)
      .storeUint(1, 64)
      .storeCoins(250n)
      .endCell()
    const rich = beginCell().storeUint(0xfffffffe, 32).storeRef(internalTransfer).endCell()
    for (const body of [old, rich])
      expect(received(body, { bounced: true })).toMatchObject([
        { from: Buffer.alloc(0), to: owner, value: 250n, only: 'to', detail: { bounced: 'true' } },
      ])
  })

  it('brings tokens back whose burning the master refused', () => {
    const body = beginCell()
      .storeUint(0xffffffff, 32)
      .storeUint(0x7bdd97de, 32)
      .storeUint(1, 64)
      .storeCoins(9n)
      .endCell()
    expect(received(body, { bounced: true })).toMatchObject([{ to: owner, value: 9n, only: 'to' }])
    expect(received(body, { bounced: true, isDone: false })).toEqual([])
  })

  it('is unknown where the standard does not name it', () => {
    const strange = beginCell().storeUint(0x12345678, 32).endCell()
    expect(received(strange)).toBeUndefined()
    expect(received(strange, { bounced: true })).toBeUndefined()
    const broken = beginCell().storeUint(0x178d4519, 32).storeUint(1, 16).endCell()
    expect(received(broken)).toBeUndefined()
  })

  it('is an outgoing transfer with an empty receiver when tokens are burned', () => {
    const burn = beginCell()
      .storeUint(0x595f07bc, 32)
      .storeUint(1, 64)
      .storeCoins(9n)
      .storeAddress(null)
      .storeMaybeRef(null)
      .endCell()
    expect(received(burn)).toMatchObject([
      { from: owner, to: Buffer.alloc(0), value: 9n, only: 'from' },
    ])
  })
})
