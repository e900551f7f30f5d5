import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import { expect, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { awaitCursor, lockCursor, lockCursorInTurn, setCursor } from '../tracking/blocks.ts'
import { assertLease } from '../tracking/leases.ts'
import { hasOpenTransactions } from '../transactions/open.ts'
import { setConfirmation } from '../wallets/confirmation.ts'
import { listReceiverHeaders, listReceivers } from '../webhooks/delivery-claims.ts'
import { listDueWaiting } from '../webhooks/due-notifications.ts'
import { findWebhooks } from '../webhooks/notifications.ts'
import type { Db } from './database.ts'
import { prepared } from './prepared.ts'

const { pool } = await freshDatabase()
const now = new Date()
const ids = { organization_id: randomUUIDv7(), wallet_id: randomUUIDv7() }
const webhook_id = randomUUIDv7()

// The tables are empty and nothing is known of them: then reading one whole seems cheapest.
const planOf = async (text: string): Promise<string> => {
  const client = await pool.connect()
  const places = new Set(text.match(/\$\d+/g)).size
  const values = places > 0 ? `(${Array.from({ length: places }, () => 'null').join()})` : ''
  try {
    await client.query('set plan_cache_mode = force_generic_plan')
    await client.query(`prepare planned as ${text}`)
    const { rows } = await client.query(`explain execute planned${values}`)
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  } finally {
    await client.query('deallocate planned')
    await client.query('reset plan_cache_mode')
    client.release()
  }
}

test.each<[what: string, work: (watched: Db) => Promise<unknown>]>([
  ['the lease of a worker', (db) => assertLease(db, 'name', 1).catch(() => {})],
  ['the cursor of a block', (db) => lockCursor(db, 1)],
  ['the cursor of a request', (db) => awaitCursor(db, 1)],
  ['the cursor of a request in its turn', (db) => lockCursorInTurn(db, 1)],
  [
    'moving the cursor',
    (db) =>
      setCursor(db, {
        network_id: 1,
        block_number: 1,
        block_hash: randomBytes(32),
        update_time: now,
      }).catch(() => {}),
  ],
  ['open transactions', (db) => hasOpenTransactions(db, 1)],
  [
    'a change of the confirmation',
    (db) =>
      setConfirmation(
        db,
        { ...ids, network_id: 1 },
        { ...ids, confirmation: 2, update_time: now, head: 1 },
      ),
  ],
  ['webhooks of transfers', (db) => findWebhooks(db, 1, [ids], 'WEBHOOK_EVENT_TRANSFER', 5)],
  ['due notifications', (db) => listDueWaiting(db, { network_id: 1, head: 1, limit: 200 })],
  ['receivers', (db) => listReceivers(db, [webhook_id])],
  ['headers of receivers', (db) => listReceiverHeaders(db, [webhook_id])],
])('the prepared statement of %s reads by an index, planned on empty tables', async (_, work) => {
  const texts: string[] = []
  const note = ({ query }: { query: CompiledQuery }) => void texts.push(query.sql)
  await work(new Kysely({ dialect: new PostgresDialect({ pool }), log: note }))
  const [text = '', ...others] = texts.filter((one) => one.startsWith(prepared))
  expect(others).toEqual([])
  const plan = await planOf(text)
  expect(plan).not.toMatch(/Seq Scan/)
})
