import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { emptyDatabase } from '../../../test/helpers/database.ts'
import { silentLog } from '../../lib/log.ts'
import { readMigrations } from '../migrations/files.ts'
import { migrateDatabase } from '../migrations/migrate.ts'
import { listAttempts } from './deliveries.ts'

it('0070: attempts keep their notification, and those of none are left out', async () => {
  const { db, pool } = await emptyDatabase('embedded')
  const files = await readMigrations()
  const before = files.filter(({ name }) => name < '0070')
  await migrateDatabase(db, { log: silentLog, files: before })
  const [organization_id, webhook_id] = [randomUUID(), randomUUID()]
  const [notified, waiting] = [randomUUID(), randomUUID()]
  for (const [id, sequence] of [
    [notified, 7],
    [waiting, null],
  ])
    await pool.query(
      `insert into delivery (webhook_history_id, organization_id, chain_id, webhook_id,
         notification_type, data, sequence, create_time) values ($1, $2, 1, $3, 'N', '{}', $4, now())`,
      [id, organization_id, webhook_id, sequence],
    )
  for (const [id, attempt] of [
    [notified, 2],
    [notified, 1],
    [waiting, 1],
    [randomUUID(), 1],
  ])
    await pool.query(
      `insert into delivery_attempt (webhook_history_id, attempt, organization_id, attempt_time,
         duration_ms, status_code, error, response_body)
       values ($1, $2, $3, '2026-01-02T03:04:05.678Z', 12, 500, 'e', 'body')`,
      [id, attempt, organization_id],
    )
  await migrateDatabase(db, { log: silentLog, files })
  const attempt = {
    webhook_id,
    sequence: 7,
    organization_id,
    attempt_time: new Date('2026-01-02T03:04:05.678Z'),
    duration_ms: 12,
    status_code: 500,
    error: 'e',
    response_body: Buffer.from('body'),
  }
  expect(await listAttempts(db, { webhook_id, sequence: 7 }, 10)).toEqual([
    { ...attempt, attempt: 1 },
    { ...attempt, attempt: 2 },
  ])
  expect((await pool.query('select 1 from delivery_attempt')).rowCount).toBe(2)
})
