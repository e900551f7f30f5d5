import { expect, it } from 'vitest'
import { readRealBlock, writeRaw } from '../../../test/helpers/ton-real-blocks.ts'
import { ChainUnavailableError, type Tracked } from '../chain.ts'
import { createVerificationCounts } from '../verification.ts'
import { createBlock } from './block.ts'
import { createDoubts } from './doubts.ts'

const everyone: Tracked = {
  accounts: { has: () => true, size: 1 },
  contracts: { has: () => false, size: 0 },
  tokenAccount: () => [],
}
const native = {
  asset_type: 'ASSET_TYPE_T' as const,
  contract_address: Buffer.alloc(0),
  token_id: 0n,
}
const id = { workchain: 0, shard: '-9223372036854775808', seqno: 7, root_hash: '', file_hash: '' }

it('a transaction that a node repeats in a later block is refused and named, and is no second record', () => {
  const { time, transactions } = readRealBlock('mainnet_0_54302208.boc')
  const { account, cell } = transactions[0]!
  const raw = writeRaw(account, cell)
  let now = 0
  const doubts = createDoubts({ now: () => now })
  const counts = createVerificationCounts('structural')
  let accused = 0
  const decode = (number: number, given = raw) =>
    createBlock({
      header: { number, hash: Buffer.alloc(32), parent_hash: Buffer.alloc(32), time },
      parts: [{ id, transactions: [given], accuse: () => accused++ }],
      tops: [],
      native,
      doubts,
      counts,
    }).decode(everyone)
  const { movements } = decode(10)
  expect(movements.length).toBeGreaterThan(0)
  // The same block again, and one of history, say the same as before.
  expect(decode(10).movements).toEqual(movements)
  expect(decode(9).undecoded).toBeUndefined()
  expect(() => decode(11)).toThrow(ChainUnavailableError)
  expect(() => decode(11)).toThrow('an earlier block had it already')
  expect(accused).toBe(2)
  // Where every node repeats it for a while, it is a gap of its own.
  expect(() => decode(11)).toThrow(ChainUnavailableError)
  now += 30_000
  expect(decode(11)).toMatchObject({
    movements: [],
    undecoded: [{ hash: cell.hash(), reason: 'an earlier block had it already' }],
  })
  const { lt } = raw.transaction_id
  const later = { ...raw, transaction_id: { ...raw.transaction_id, lt: String(BigInt(lt) + 1n) } }
  expect(decode(12, later).undecoded).toMatchObject([
    { reason: 'its logical time is not that of its cells' },
  ])
  expect(counts.status()).toMatchObject({
    checked: { transaction: 3 },
    refused: { transaction: 5 },
  })
})

it('what is remembered is bounded', () => {
  const doubts = createDoubts({ now: () => 0 })
  for (let number = 0; number < 70_000; number++) doubts.isReplayed(`a${number}`, 5n, 1)
  expect(doubts.isReplayed('a69999', 5n, 2)).toBe(true)
  expect(doubts.isReplayed('a0', 5n, 2)).toBe(false)
})
