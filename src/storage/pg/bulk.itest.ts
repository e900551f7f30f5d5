import { randomUUIDv7 } from 'node:crypto'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { storeTracked } from '../balances/balances.ts'
import { insertBlocks } from '../tracking/blocks.ts'
import { ensureNetwork } from '../tracking/networks.ts'
import { insertNewRows, insertRows } from './bulk.ts'

const { db, pool } = await freshDatabase()
const create_time = new Date()
const network_id = await ensureNetwork(db, { chain: 'c', network: 'bulk', create_time })

const blockOf = (block_number: number, mark: number) => ({
  network_id,
  block_number,
  block_hash: Buffer.of(mark),
  parent_hash: Buffer.of(0),
  block_time: create_time,
})

it('rows that were thought to be new, and are not, change nothing, and the others are stored', async () => {
  await insertBlocks(db, [blockOf(2, 2)])
  const counts = await db.transaction().execute(async (trx) => {
    const some = await insertNewRows(trx, 'block', [blockOf(0, 1), blockOf(1, 1)])
    const rest = await insertNewRows(trx, 'block', [blockOf(2, 3), blockOf(3, 3), blockOf(3, 4)])
    return [some, rest, await insertNewRows(trx, 'block', [])]
  })
  expect(counts).toEqual([2, 1, 0])
  const { rows } = await pool.query('select block_number, block_hash from block order by 1')
  expect(rows.map((row) => [Number(row.block_number), row.block_hash[0]])).toEqual([
    [0, 1],
    [1, 1],
    [2, 2],
    [3, 3],
  ])
})

it('a row that the table does not take fails as it is', async () => {
  const bad = { ...blockOf(9, 9), network_id: 999 }
  await expect(
    db.transaction().execute((trx) => insertNewRows(trx, 'block', [bad])),
  ).rejects.toMatchObject({ code: '23503' })
})

it('a reading of an open backlog makes a balance or replaces an older one', async () => {
  const [wallet_id, organization_id] = [randomUUIDv7(), randomUUIDv7()]
  const asset_id = randomUUIDv7()
  const reading = (number: number, balance: bigint, as_of_block: number) => ({
    ...{ wallet_id, organization_id, asset_id, balance, as_of_block },
    address: Buffer.of(number),
    asset_type: 'ASSET_TYPE_C' as const,
    contract_address: Buffer.alloc(0),
  })
  await storeTracked(db, [reading(1, 10n, 5), reading(2, 20n, 7)], create_time)
  await storeTracked(db, [reading(3, 3n, 6), reading(2, 2n, 6), reading(1, 1n, 6)], create_time)
  await storeTracked(db, [], create_time)
  const { rows } = await pool.query(
    'select balance, as_of_block from balance where wallet_id = $1 order by address',
    [wallet_id],
  )
  expect(rows.map((row) => [String(row.balance), Number(row.as_of_block)])).toEqual([
    ['1', 6],
    ['20', 7],
    ['3', 6],
  ])
})

it('what many rows have in common arrives in each of them, whatever its type', async () => {
  const [network_id] = (await db.selectFrom('network').select('network_id').execute()).map(
    (row) => row.network_id,
  )
  const backlog_ids = Array.from({ length: 40 }, () => randomUUIDv7())
  const rowOf = (backlog_id: string) => ({
    ...{ network_id: network_id!, due_block: 2 ** 40, pair_count: 1, backlog_id },
    work: 'the same text',
  })
  expect(await insertRows(db, 'balance_backlog', backlog_ids.map(rowOf))).toBe(40)
  const stored = await db.selectFrom('balance_backlog').selectAll().orderBy('backlog_id').execute()
  expect(stored).toEqual(backlog_ids.toSorted().map(rowOf))
  // Nothing differs: one is new, the others are there already.
  const [wallet_id, asset_id] = [randomUUIDv7(), randomUUIDv7()]
  const change = {
    ...{ wallet_id, asset_id, organization_id: wallet_id, network_id: network_id! },
    ...{ address: Buffer.of(1, 2), block_number: 7, due_block: 9, delta: -5n },
  }
  expect(await insertRows(db, 'balance_change', Array(40).fill(change))).toBe(1)
  const [only] = await db.selectFrom('balance_change').selectAll().execute()
  expect(only).toEqual({ ...change, ahead: null, is_reread: null })
})
