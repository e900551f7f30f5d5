import { randomUUIDv7 } from 'node:crypto'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { hashId } from '../../lib/hash-id.ts'
import { readMigrations } from '../migrations/files.ts'

const { pool } = await freshDatabase()

it('what was taken back before there were generations is of no block after the migration', async () => {
  const organization_id = randomUUIDv7()
  const webhook_id = randomUUIDv7()
  const [standing, gone, old] = [randomUUIDv7(), randomUUIDv7(), randomUUIDv7()]
  const rows: [string, number | null][] = [
    [standing, 5_000],
    [gone, 5_001],
    [old, 100],
    [hashId('reorged', gone), null],
    [hashId('reorged', old), null],
  ]
  await pool.query(
    `insert into chain (chain_id, chain, network, create_time, is_traced)
     values (77, 'c', 'migrated', now(), false)`,
  )
  await pool.query(
    `insert into tracker_cursor (chain_id, name, block_number, block_hash, update_time)
     values (77, 'tracker', 5002, '\\x01', now())`,
  )
  for (const [at, [id, block_number]] of rows.entries())
    await pool.query(
      `insert into delivery (webhook_history_id, organization_id, chain_id, webhook_id,
         notification_type, data, sequence, block_number, create_time)
       values ($1, $2, 77, $3, 'x', '{}', $4, $5, now())`,
      [id, organization_id, webhook_id, at + 1, block_number],
    )
  const [migration] = (await readMigrations()).filter(({ name }) => name.startsWith('0110-'))
  await pool.query(migration!.sql)
  const { rows: after } = await pool.query(
    'select block_number::int4 as at from delivery where webhook_id = $1 order by sequence',
    [webhook_id],
  )
  // An old block cannot come back: its rows are left alone.
  expect(after.map(({ at }) => at)).toEqual([5_000, null, 100, null, null])
})
