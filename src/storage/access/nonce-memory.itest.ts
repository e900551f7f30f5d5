import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { isOnCitus } from '../../../test/helpers/citus.ts'
import { type FreshDatabase, freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { silentLog } from '../../lib/log.ts'
import { openDatabase } from '../pg/database.ts'
import { insertCredential } from './credentials.ts'
import type { RequestNonce } from './nonce-leads.ts'
import { createNonceMemory } from './nonce-memory.ts'
import { createSpendNonces } from './nonces.ts'
import { insertOrganization } from './organizations.ts'

const database = await freshDatabase()
const { pool } = database

const makeCredential = async ({ db }: FreshDatabase = database): Promise<string> => {
  const [organization_id, credential_id] = [randomUUID(), randomUUID()]
  const create_time = new Date()
  const domain = `d-${organization_id}`
  await insertOrganization(db, { organization_id, name: 'n', domain, create_time })
  await insertCredential(db, {
    ...{ credential_id, organization_id, role: 'ROLE_MEMBER', name: '', create_time },
    ...{ api_key_hash: Buffer.from(credential_id), api_key_sealed: Buffer.alloc(1) },
    api_secret_sealed: Buffer.alloc(1),
  })
  return credential_id
}

const useOf = (credential_id: string, ms = 0): RequestNonce => ({
  ...{ credential_id, nonce: randomUUID(), time: new Date(Date.now() + ms) },
  expire_time: new Date(Date.now() + 600_000),
})

const credential_id = await makeCredential()
const use = (ms = 0) => useOf(credential_id, ms)

/** A memory and its nonces that are checked and trusted. */
const trusted = async (on: FreshDatabase = database) => {
  const memory = createNonceMemory(on.db)
  await memory.begin()
  await on.pool.query(`update nonce_memory set written_by = pg_current_xact_id()::xid,
    trusted_after = '-infinity', restored_after = '-infinity'`)
  return { memory, spend: createSpendNonces(on, memory) }
}

/** What a dump holds of the memory. */
const dump = async () => (await pool.query('select * from nonce_memory')).rows[0]

const restore = async (row: Record<string, unknown>) => {
  const names = Object.keys(row)
  await pool.query('delete from nonce_memory')
  await pool.query(
    `insert into nonce_memory (${names.join()}) values (${names.map((_, at) => `$${at + 1}`).join()})`,
    Object.values(row),
  )
}

const deleteNonces = (...uses: RequestNonce[]) =>
  pool.query('delete from request_nonce where nonce = any ($1)', [uses.map(({ nonce }) => nonce)])

test('a memory that nothing happened to is trusted at once', async () => {
  const { memory, spend } = await trusted()
  expect(await memory.begin()).toBe(0)
  await memory.keep()
  expect(await spend([use(), use(-200_000)])).toEqual(['spent', 'spent'])
  expect(await createNonceMemory(database.db).begin()).toBe(0)
})

test('a memory that was restored into the same table is not', async () => {
  const { spend } = await trusted()
  const before = await dump()
  const [one, late] = [use(), use(-200_000)]
  expect(await spend([one, late])).toEqual(['spent', 'spent'])
  await restore(before)
  await deleteNonces(one, late)
  expect(await spend([one])).toEqual(['unsure'])
  expect(await spend([one, late, use()])).toEqual(['unsure', 'unsure', 'unsure'])
  await waitFor('nonces are trusted again', async () => (await spend([use()]))[0] === 'spent')
  expect(await spend([one, late])).toEqual(['unsure', 'unsure'])
})

test('a service that starts after the restore does not trust it either', async () => {
  const { spend } = await trusted()
  const before = await dump()
  const one = use()
  expect(await spend([one])).toEqual(['spent'])
  await restore(before)
  await deleteNonces(one)
  const memory = createNonceMemory(database.db)
  expect(await memory.begin()).toBeGreaterThan(1_000)
  expect(await createSpendNonces(database, memory)([one])).toEqual(['unsure'])
})

test.each(['system_identifier', 'timeline'])('another %s indicates a restore', async (column) => {
  await trusted()
  const { rows } = await pool.query(`select ${column} as value from nonce_memory`)
  expect(rows[0].value).toMatch(/^[0-9A-F]{8,20}$/)
  await pool.query(
    `update nonce_memory set ${column} = '1', written_by = pg_current_xact_id()::xid`,
  )
  expect(await createNonceMemory(database.db).begin()).toBeGreaterThan(1_000)
})

test('a start of the server that the memory does not know refuses nonces up to the start', async () => {
  await trusted()
  await pool.query(`update nonce_memory
    set server_start_time = null, written_by = pg_current_xact_id()::xid`)
  const memory = createNonceMemory(database.db)
  const spend = createSpendNonces(database, memory)
  await memory.begin()
  const { rows } =
    await pool.query(`select restored_after = server_start_time + interval '2 seconds'
    and server_start_time = pg_postmaster_start_time() as known,
    restored_after from nonce_memory`)
  expect(rows[0].known).toBe(true)
  const at = (ms: number) => ({ ...use(), time: new Date(rows[0].restored_after.getTime() + ms) })
  expect(await spend([at(-1), at(2)])).toEqual(['unsure', 'spent'])
})

test('a new database on a server that has just started is trusted at once', async () => {
  const { db, pool } = await freshDatabase()
  const { rows } = await pool.query(
    'select server_start_time = pg_postmaster_start_time() as known from nonce_memory',
  )
  expect(rows[0].known).toBe(true)
  expect(await createNonceMemory(db).begin()).toBe(0)
})

// A process of Citus uses the database.
test.skipIf(isOnCitus)('a copy of the whole database is detected', async () => {
  const source = await freshDatabase()
  await trusted(source)
  const { connection } = source
  const copy = `${connection.database}_copy`
  const owner = openDatabase({
    connection: { ...connection, database: 'postgres' },
    log: silentLog,
  })
  await owner.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = '${connection.database}'`)
  await owner.pool.query(`create database ${copy} template ${connection.database}`)
  const target = openDatabase({ connection: { ...connection, database: copy }, log: silentLog })
  expect(await createNonceMemory(target.db).begin()).toBeGreaterThan(1_000)
  await target.stop()
  await owner.pool.query(`drop database ${copy} with (force)`)
  await owner.stop()
})

test('a memory older than the service has seen is not trusted', async () => {
  const { memory, spend } = await trusted()
  await memory.keep()
  const one = use()
  expect(await spend([one])).toEqual(['spent'])
  await deleteNonces(one)
  // As the files of a stopped server hold it: everything is right but the time.
  await pool.query(`update nonce_memory
    set seen_time = seen_time - interval '5 seconds', written_by = pg_current_xact_id()::xid`)
  expect(await spend([one])).toEqual(['unsure'])
  expect(await spend([one])).toEqual(['unsure'])
})

test('after a long break a service trusts nonces of after its start only', async () => {
  await trusted()
  await pool.query(`update nonce_memory
    set seen_time = seen_time - interval '31 seconds', written_by = pg_current_xact_id()::xid`)
  const before = use()
  const memory = createNonceMemory(database.db)
  expect(await memory.begin()).toBe(0)
  expect(await createSpendNonces(database, memory)([before, use(100)])).toEqual(['unsure', 'spent'])
})

test('a clock that was ahead before the restore waits for its lead', async () => {
  const { spend } = await trusted()
  const fast = await makeCredential()
  expect(await spend([useOf(fast, 60_000)])).toEqual(['spent'])
  const before = await dump()
  const one = useOf(fast, 60_000)
  expect(await spend([one])).toEqual(['spent'])
  await restore(before)
  await deleteNonces(one)
  expect(await spend([one])).toEqual(['unsure'])
  // Others do not wait for it.
  await waitFor('nonces are trusted again', async () => (await spend([use()]))[0] === 'spent')
  expect(await spend([one])).toEqual(['unsure'])
})

test('a role that may not read the identity of the server is served all the same', async () => {
  await pool.query(`create role nonce_reader login;
    grant select, insert, update on all tables in schema public to nonce_reader`)
  const revoke = 'revoke execute on function pg_control_system() from public'
  await pool.query(revoke)
  const connection = { ...database.connection, user: 'nonce_reader' }
  const other = openDatabase({ connection, log: silentLog })
  try {
    await trusted()
    const memory = createNonceMemory(other.db)
    expect(await memory.begin()).toBe(0)
    expect(await createSpendNonces(other, memory)([use()])).toEqual(['spent'])
    expect(await createNonceMemory(database.db).begin()).toBe(0)
  } finally {
    await other.stop()
    await pool.query('grant execute on function pg_control_system() to public')
    await pool.query('drop owned by nonce_reader; drop role nonce_reader')
  }
})
