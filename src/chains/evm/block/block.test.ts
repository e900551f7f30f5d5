import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { AssetType } from '../../../contract/records/assets.ts'
import { createByteSet } from '../../../lib/bytes.ts'
import type { TransferView } from '../../chain.ts'
import { readBlock } from '../codec/header.ts'
import { bytesOf } from '../codec/raw.ts'
import { transferTopic } from '../codec/topics.ts'
import { evmFamily } from '../family.ts'
import { addressOf, type StubTransaction, stubBlock, wordOf } from '../testing/stub-chain.ts'
import { createBlock } from './block.ts'
import type { InternalTransfer } from './traces.ts'

const [a, b, c, coin, other] = [1, 2, 3, 0xc0, 0xd0].map(addressOf) as [
  string,
  string,
  string,
  string,
  string,
]
const paid = (contract: string, from: string, to: string, value: number) => ({
  address: contract,
  topics: [transferTopic, wordOf(from), wordOf(to)],
  data: wordOf(value),
})

const readStub = (transactions: StubTransaction[]) => {
  const { block, receipts, number } = stubBlock(transactions)
  return {
    block: readBlock(block, { number, rules: { proof: 'root', unproven_types: new Set() } })!,
    receipts,
  }
}
const make = (transactions: StubTransaction[], internal?: InternalTransfer[][], extra = {}) => {
  const { block, receipts } = readStub(transactions)
  const parts = { block: { ...block, ...extra }, receipts, native: evmFamily.native }
  return createBlock({ ...parts, internal: { transfers: internal ?? [] } })
}
const trackedOf = (accounts: string[], contracts: string[] = []) => ({
  accounts: createByteSet(accounts.map(bytesOf)),
  contracts: createByteSet(contracts.map(bytesOf)),
  tokenAccount: () => [],
})
const hex = (bytes: Uint8Array) => (bytes.length ? `0x${Buffer.from(bytes).toString('hex')}` : '')
const decode = (block: ReturnType<typeof make>, accounts: string[], contracts: string[] = []) => {
  const { movements, touched } = block.decode(trackedOf(accounts, contracts))
  return {
    moved: movements.map(({ from, to, value, failed }) => [
      hex(from),
      hex(to),
      value,
      ...(failed ? ['failed'] : []),
    ]),
    touched: touched.map(({ address, asset }) => [hex(address), hex(asset.contract_address)]),
    ordinals: movements.map(({ ordinal }) => ordinal),
  }
}

describe('a block', () => {
  it('gives payments to both ends, and the payer of a fee without a payment', () => {
    const block = make([
      { from: a, to: b, value: 5n },
      { from: c, to: b },
    ])
    expect(decode(block, [b])).toMatchObject({ moved: [[a, b, 5n]], touched: [[b, '']] })
    expect(decode(block, [c])).toMatchObject({ moved: [[c, b, 0n]], touched: [[c, '']] })
    expect([...block.accounts(createByteSet([]))].map(hex)).toEqual(
      expect.arrayContaining([a, b, c]),
    )
  })

  it('gives a sender a record of every transaction, which is the one that counts its fee', () => {
    const created = { from: a, to: null, receipt: { contractAddress: c } }
    const inside = [[], [{ from: coin, to: a, value: 9n }], [], []]
    const block = make(
      [
        { from: a, to: coin, logs: [paid(coin, a, b, 7)] },
        { from: a, to: coin },
        { from: a, to: a },
        created,
      ],
      inside,
    )
    const { moved, ordinals } = decode(block, [a, c], [coin])
    expect(moved).toEqual([
      [a, coin, 0n],
      [a, b, 7n],
      [a, coin, 0n],
      [coin, a, 9n],
      [a, a, 0n],
      [a, c, 0n],
    ])
    expect(ordinals).toEqual(ordinals.toSorted((one, other) => one - other))
    const { movements } = block.decode(trackedOf([a], [coin]))
    const paying = movements.filter(({ ordinal }) =>
      evmFamily.paysFee({ side: 0, ordinal } as TransferView),
    )
    expect(paying.map(({ value, only }) => [value, only])).toEqual(Array(4).fill([0n, 'from']))
    // What is called without coin has no record of its own and is not looked up.
    expect(decode(block, [c, coin]).moved).toEqual([[coin, a, 9n]])
    expect([...make([{ from: a, to: b }]).accounts(createByteSet([]))].map(hex)).not.toContain(b)
  })

  it('reads tokens as what they are registered, in each organization as its own type', () => {
    const indexed = {
      address: coin,
      topics: [transferTopic, wordOf(a), wordOf(b), wordOf(7)],
      data: '0x',
    }
    const block = make([{ from: c, to: coin, logs: [indexed] }])
    const assetsAs = (...types: AssetType[]) =>
      block
        .decode({ ...trackedOf([b], [coin]), assetTypesOf: () => types })
        .movements.map(({ asset, value }) => [asset.asset_type, asset.token_id, value])
    expect(assetsAs('ASSET_TYPE_ERC20')).toEqual([['ASSET_TYPE_ERC20', 0n, 7n]])
    expect(assetsAs('ASSET_TYPE_ERC20', 'ASSET_TYPE_ERC721')).toEqual([
      ['ASSET_TYPE_ERC20', 0n, 7n],
      ['ASSET_TYPE_ERC721', 7n, 1n],
    ])
  })

  it('gives a failed transaction to its sender only, whatever it would have moved', () => {
    const block = make([{ from: a, to: b, value: 5n, receipt: { status: '0x0' } }])
    expect(decode(block, [a, b])).toMatchObject({
      moved: [[a, b, 5n, 'failed']],
      touched: [[a, '']],
    })
    expect(decode(block, [b]).moved).toEqual([])
    const call = make([{ from: a, to: b, receipt: { status: '0x0' } }])
    expect(decode(call, [a]).moved).toEqual([[a, b, 0n, 'failed']])
  })

  it('gives a new contract its endowment', () => {
    const receipt = { contractAddress: c }
    expect(decode(make([{ from: a, to: null, value: 5n, receipt }]), [c]).moved).toEqual([
      [a, c, 5n],
    ])
  })

  it('gives tokens of watched contracts, without movements of nothing', () => {
    const logs = [paid(coin, a, b, 7), paid(other, a, b, 8), paid(coin, a, b, 0)]
    const block = make([{ from: c, to: coin, logs }])
    expect(block.contracts.map(hex)).toEqual([coin, other])
    expect(decode(block, [a, b], [coin])).toMatchObject({
      moved: [[a, b, 7n]],
      touched: [
        [a, coin],
        [b, coin],
      ],
    })
    expect(decode(block, [a, b]).moved).toEqual([])
    expect([...block.accounts(createByteSet([]))].map(hex)).not.toContain(b)
  })

  it('keeps its ordinals independent of tracked accounts and traces', () => {
    const transactions = [
      { from: a, to: b, value: 1n, logs: [paid(coin, a, b, 2), paid(other, c, a, 3)] },
      { from: c, to: b, value: 4n, logs: [paid(coin, c, b, 5)] },
    ]
    const inside = [[{ from: b, to: c, value: 6n }], [{ from: b, to: a, value: 7n }]]
    const all = decode(make(transactions, inside), [a, b, c], [coin, other])
    expect(all.moved.map(([, , value]) => value)).toEqual([1n, 2n, 3n, 6n, 4n, 5n, 7n])
    expect(new Set(all.ordinals).size).toBe(7)
    expect(all.ordinals.every(Number.isSafeInteger)).toBe(true)
    const fewer = decode(make(transactions), [c], [coin])
    for (const [index, [, , value]] of fewer.moved.entries())
      expect(all.ordinals[all.moved.findIndex((one) => one[2] === value)]).toBe(
        fewer.ordinals[index],
      )
  })

  it('gives a deposit what it mints, even where the deposit fails', () => {
    const deposit = { from: a, to: b, value: 3n, type: '0x7e', transaction: { mint: '0x5' } }
    expect(decode(make([deposit]), [a, b]).moved).toEqual([
      ['', a, 5n],
      [a, b, 3n],
    ])
    expect(decode(make([{ ...deposit, receipt: { status: '0x0' } }]), [a]).moved).toEqual([
      ['', a, 5n],
      [a, b, 3n, 'failed'],
    ])
  })

  it('records what Arbitrum mints for a deposit and for a retryable ticket', () => {
    const sent = { hash: `0x${'7'.repeat(64)}`, from: a, to: b, value: '0x3', nonce: '0x0' }
    const movedBy = (transaction: object) =>
      decode(make([{ from: a, to: b }], undefined, { transactions: [transaction] }), [a]).moved
    expect(movedBy({ ...sent, type: '0x69', depositValue: '0x9' })).toEqual([
      ['', a, 9n],
      [a, b, 3n],
    ])
    expect(movedBy({ ...sent, type: '0x64' })).toEqual([
      ['', a, 3n],
      [a, b, 3n],
    ])
  })

  it('includes accounts that are paid without a transaction', () => {
    const withdrawals = [{ address: c, amount: '0x1' }]
    const block = make([{ from: a, to: b }], undefined, { miner: b, withdrawals })
    expect(decode(block, [b, c]).touched).toEqual([
      [b, ''],
      [c, ''],
    ])
  })

  it('names no nonce of a transaction from the other chain whose receipt has none', () => {
    const block = make([
      { from: a, type: '0x7e', receipt: { type: '0x7e' } },
      { from: b, type: '0x7e', receipt: { type: '0x7e', depositNonce: '0x5' } },
      { from: c, transaction: { nonce: '0x7' } },
    ])
    const sent = block.sent!.map(({ from, nonce }) => [hex(from), nonce])
    expect(sent).toEqual([
      [b, 5],
      [c, 7],
    ])
  })

  it('reports that it could not be traced', () => {
    const { block, receipts } = readStub([{ from: a, to: b, value: 1n }])
    const untraced = createBlock({ block, receipts, native: evmFamily.native, internal: {} })
    expect(untraced.decode(trackedOf([a])).unknown_kinds).toEqual({ untraced_block: 1 })
    expect(untraced).not.toHaveProperty('lacks')
  })

  it('of the time before receipts had a status did not fail', () => {
    const receipt = { status: null, root: wordOf(9) }
    expect(decode(make([{ from: a, to: b, value: 5n, receipt }]), [b]).moved).toEqual([[a, b, 5n]])
  })

  it('keeps none of its receipts while it waits to be stored', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const parts = () => {
      const { block, receipts } = readStub([{ from: a, to: coin, logs: [paid(coin, a, b, 7)] }])
      const internal = { transfers: [[]] }
      const made = createBlock({ block, receipts, native: evmFamily.native, internal })
      return {
        made,
        receipts: new WeakRef(receipts),
        transactions: new WeakRef(block.transactions),
      }
    }
    const { made, receipts, transactions } = parts()
    // What a weak reference has shown lives until the turn ends.
    await turn()
    collect()
    expect([receipts.deref(), transactions.deref()]).toEqual([undefined, undefined])
    expect(decode(made, [b], [coin]).moved).toEqual([[a, b, 7n]])
  })
})
