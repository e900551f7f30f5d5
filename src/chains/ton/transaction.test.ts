import { Cell } from '@ton/core'
import { expect, it } from 'vitest'
import { readFixture, readRealBlock, writeRaw } from '../../../test/helpers/ton-real-blocks.ts'
import { nativeMovements } from './movements.ts'
import { decodeTransaction, proveTransaction } from './transaction.ts'

const accountOf = (cell: Cell): Buffer => {
  const account = cell.beginParse().skip(4).loadBuffer(32)
  return Buffer.concat([Buffer.from([0]), account])
}
const place = {
  ordinal: 0,
  mc_seq_no: 9,
  block: { workchain: 0, shard: '-9223372036854775808', seqno: 5, root_hash: '', file_hash: '' },
}
const asset = {
  asset_type: 'ASSET_TYPE_T' as const,
  contract_address: Buffer.alloc(0),
  token_id: 0n,
}

it('a transaction of a suspended account is decoded', () => {
  const cell = Cell.fromBoc(readFixture('generated_suspended_transaction.boc'))[0]!
  const account = accountOf(cell)
  const transaction = decodeTransaction(cell, account)
  expect(transaction).toMatchObject({ isDone: false, isReturned: true, hash: cell.hash() })
  expect(nativeMovements(transaction, place, { asset, account })).toMatchObject([
    { only: 'to', detail: { status: 'failed' } },
    { only: 'from', detail: { bounced: 'true' } },
  ])
})

it('a transaction with a Merkle proof in its message is decoded', () => {
  const { boc } = JSON.parse(readFixture('tx_with_merkle_body.json').toString()) as { boc: string }
  const cell = Cell.fromBoc(Buffer.from(boc, 'hex'))[0]!
  const transaction = decodeTransaction(cell, accountOf(cell))
  expect(transaction.hash.toString('base64url')).toBe('ymdvDzDSHIgo0QlEJHlwhbYD6ZHSaUPuF-5dd6xLCJY')
})

it.for([
  ['mainnet_0_71398501_2026-05-13.boc', 269],
  ['mainnet_0_54302208.boc', 0],
  ['mainnet_0_4168601_empty.boc', 0],
] as const)('every transaction of the recorded block %s is decoded', ([name, least]) => {
  const { transactions, time } = readRealBlock(name)
  expect(transactions.length).toBeGreaterThanOrEqual(least)
  for (const { account, cell } of transactions) {
    const proved = proveTransaction(writeRaw(account, cell))!
    const decoded = decodeTransaction(proved, Buffer.from(`00${account}`, 'hex'))
    expect(decoded.time).toBe(time)
    expect(decoded.fee).toBeGreaterThanOrEqual(0n)
  }
})
