import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import type { Database, Db } from '../pg/database.ts'
import { ensurePartitions } from '../pg/partitions.ts'
import { deleteExpiredIdempotencyKeys } from './idempotency-keys.ts'
import { deleteExpiredNonces } from './nonces.ts'
import { erasePage, finishDeletion } from './organization-erasing.ts'

const rowCount = 5_000
const fewReads = 2_500

/** One that stays, one with wallets only, and one whose rows are removed after the statistics. */
const organizations = { others: randomUUIDv7(), empty: randomUUIDv7(), gone: randomUUIDv7() }

/** Values of columns that have a check or a reference; the others are made of their type. */
const values: Record<string, string> = {
  network_id: '1',
  asset_type: `'ASSET_TYPE_C'`,
  block_time: `now() - n * interval '1 second'`,
  side: '0',
  transfer_state: `'TRANSFER_STATE_SUCCESS'`,
  transaction_state: `'TRANSACTION_STATE_CREATED'`,
  receipt_status: 'null',
  notification_type: `'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED'`,
  disable_time: 'null',
  remove_time: 'null',
  role: `'ROLE_MEMBER'`,
  expire_time: `now() - interval '1 hour'`,
}

const expressionOf = (column: string, type: string): string => {
  if (values[column]) return values[column]
  if (type === 'uuid') return 'gen_random_uuid()'
  if (type === 'text') return `'t' || n`
  if (type === 'bytea') return `sha256(organization.uuid || int4send(n))`
  if (type.startsWith('timestamp')) return 'now()'
  if (type === 'boolean') return 'false'
  if (type === 'jsonb') return `'{}'`
  if (type.endsWith('[]')) return `'{}'`
  return 'n'
}

const filled = [
  ...['wallet_address', 'token_import', 'balance_change', 'balance_pending', 'balance', 'transfer'],
  ...['managed_transaction', 'state_event', 'delivery', 'idempotency_key'],
]
const tables = ['wallet', 'credential', ...filled, 'request_nonce']

/** Rows of an organization; those of wallets are of the wallet given. */
const fill = async (
  { pool }: Database,
  table: string,
  count: number,
  own: { organization_id: string; [column: string]: string },
) => {
  const { rows } = await pool.query<{ column: string; type: string }>(
    `select attname as column, format_type(atttypid, null) as type from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    [table],
  )
  const expressions = rows.map(({ column, type }) =>
    own[column] ? `'${own[column]}'` : expressionOf(column, type),
  )
  // Without checks of references, which would take most of the time.
  await pool.query(
    `begin; set local session_replication_role = replica;
     insert into ${table} (${rows.map(({ column }) => `"${column}"`).join()})
     select ${expressions.join()} from generate_series(1, ${count}) n,
       (select uuid_send('${own.organization_id}') as uuid) organization;
     commit`,
  )
}

/**
 * The tables of which some work reads many rows; nothing of it stays. The server includes what a session has not
 * reported yet.
 */
const countRead = async (
  { db }: Database,
  work: (trx: Db) => Promise<unknown>,
): Promise<Record<string, number>> => {
  const trx = await db.startTransaction().execute()
  // The server plans its checks of references itself.
  await sql`set local session_replication_role = replica`.execute(trx)
  const soFar = async () => {
    const { rows } = await sql<{ table: string; read: number }>`
      select relname as "table", (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read
      from pg_stat_xact_user_tables`.execute(trx)
    return new Map(rows.map(({ table, read }) => [table, read]))
  }
  try {
    const before = await soFar()
    await work(joined(trx))
    const read = [...(await soFar())].map(
      ([table, count]) => [table, count - (before.get(table) ?? 0)] as const,
    )
    return Object.fromEntries(read.filter(([, count]) => count > fewReads))
  } finally {
    await trx.rollback().execute()
  }
}

/** The transaction as a database whose own transactions are part of it. */
const joined = (trx: Db): Db =>
  new Proxy(trx, {
    get: (target, name) => {
      if (name === 'transaction')
        return () => ({ execute: (work: (trx: Db) => Promise<unknown>) => work(joined(trx)) })
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

type Work = (trx: Db) => Promise<unknown>
const [limit, now] = [100, new Date()]
const works: Record<string, Work> = {
  'a page of an organization with wallets only': (trx) =>
    erasePage(trx, { organization_id: organizations.empty, limit: 1_000 }),
  'a page of an organization that has or had many rows': (trx) =>
    erasePage(trx, { organization_id: organizations.gone, limit }),
  'the end of a deletion': (trx) => finishDeletion(trx, randomUUIDv7(), now),
  'expired nonces': (trx) => deleteExpiredNonces(trx, now, 500),
  'expired idempotency keys': (trx) => deleteExpiredIdempotencyKeys(trx, now, 500),
}

const engines = ['embedded', 'system'] as const

// Versions of the server plan them differently.
describe.each(engines)('on the %s server, erasing reads few rows', (engine) => {
  let database: Database

  beforeAll(async () => {
    if (!hasEngine(engine)) return
    database = await freshDatabase(engine)
    const { db, pool } = database
    await ensurePartitions(db, now)
    // The statistics are those that each step leaves.
    for (const table of tables.filter((name) => name !== 'transfer'))
      await pool.query(`alter table ${table} set (autovacuum_enabled = false)`)
    await pool.query(`
      insert into network (network_id, chain, network, variants, is_default, create_time, is_traced)
      values (1, 'c', 'mainnet', 'C', true, now(), false)`)
    for (const [name, organization_id] of Object.entries(organizations)) {
      await fill(database, 'organization', 1, { organization_id, domain: name })
      await fill(database, 'wallet', 200, { organization_id })
      const own = { organization_id, wallet_id: randomUUIDv7(), credential_id: randomUUIDv7() }
      for (const table of ['wallet', 'credential']) await fill(database, table, 1, own)
      for (const table of name === 'empty' ? [] : filled) await fill(database, table, rowCount, own)
    }
    await fill(database, 'request_nonce', rowCount, { organization_id: organizations.others })
  })

  const states: Record<string, () => Promise<unknown>> = {
    'without statistics': async () => {},
    'with statistics': () => database.pool.query(`analyze ${tables.join()}`),
    'with statistics of rows that are gone': async () => {
      for (const table of filled)
        await database.pool.query(`delete from ${table} where organization_id = $1`, [
          organizations.gone,
        ])
    },
  }
  describe.each(Object.keys(states))('%s', (state) => {
    beforeAll(async () => {
      if (hasEngine(engine)) await states[state]!()
    })

    it.skipIf(!hasEngine(engine)).each(Object.keys(works))('%s', async (name) => {
      expect(await countRead(database, works[name]!)).toEqual({})
    })
  })
})
