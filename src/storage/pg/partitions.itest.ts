import { randomBytes, randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { isOnCitus } from '../../../test/helpers/citus.ts'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { insertRows } from './bulk.ts'
import { ensurePartitions, ensurePartitionsBetween } from './partitions.ts'

const { db } = await freshDatabase()
const now = new Date('2027-01-31T23:59:59.999Z')

const transferAt = (block_time: Date, wallet_id: string, ordinal = 0) => ({
  wallet_id,
  block_time,
  block_number: 7,
  ordinal,
  side: 0,
  organization_id: randomUUID(),
  network_id: 1,
  address: randomBytes(20),
  transaction_hash: randomBytes(32),
  asset_id: randomUUID(),
  from: randomBytes(20),
  to: randomBytes(20),
  value: 2n ** 256n - 1n,
  transaction_fee: 21_000n,
  transfer_state: 'TRANSFER_STATE_SUCCESS' as const,
  detail: { nonce: '1' },
})

test('the months around now are made once, however many processes ask', async () => {
  const made = await Promise.all(Array.from({ length: 6 }, () => ensurePartitions(db, now)))
  expect(made.flat().sort()).toEqual([
    'transfer_2026_11',
    'transfer_2026_12',
    'transfer_2027_01',
    'transfer_2027_02',
    'transfer_2027_03',
    'transfer_2027_04',
  ])
  expect(await ensurePartitions(db, now)).toEqual([])
})

test('a month is made on demand, and a reader at work is not in its way', async () => {
  const old = new Date('2019-12-31T23:59:59.999Z')
  const wallet_id = randomUUID()
  await expect(insertRows(db, 'transfer', [transferAt(old, wallet_id)])).rejects.toThrow(
    'no partition',
  )
  await db.transaction().execute(async (reader) => {
    await reader.selectFrom('transfer').selectAll().execute()
    expect(await ensurePartitionsBetween(db, old, old)).toEqual(['transfer_2019_12'])
  })
  expect(await insertRows(db, 'transfer', [transferAt(old, wallet_id)])).toBe(1)
})

// The plan of Citus is another one.
test.skipIf(isOnCitus)('a page of a wallet reads the newest month only, in order', async () => {
  const wallet_id = randomUUID()
  const times = ['2026-11-01', '2026-12-15', '2027-01-01', '2027-01-31'].map((day) => new Date(day))
  const rows = times.map((time) => transferAt(time, wallet_id))
  expect(await insertRows(db, 'transfer', rows)).toBe(4)
  expect(await insertRows(db, 'transfer', rows)).toBe(0)
  const page = db
    .selectFrom('transfer')
    .selectAll()
    .where('wallet_id', '=', wallet_id)
    .orderBy('wallet_id', 'desc')
    .orderBy('block_time', 'desc')
    .orderBy('block_number', 'desc')
    .orderBy('ordinal', 'desc')
    .limit(2)
  const found = await page.execute()
  expect(found.map(({ block_time }) => block_time)).toEqual([times[3], times[2]])
  expect(found[0]?.value).toBe(2n ** 256n - 1n)
  expect(found[0]?.detail).toEqual({ nonce: '1' })
  await sql`analyze transfer`.execute(db)
  const plan = JSON.stringify(await page.explain('json', sql`analyze`))
  expect(plan).toContain('"Node Type":"Append"')
  expect(plan).not.toContain('Merge Append')
})
