import { randomUUID } from 'node:crypto'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { embeddedBinaries } from '../../../test/helpers/postgres.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { silentLog } from '../../lib/log.ts'
import { startEmbeddedPostgres } from '../embedded/embedded-postgres.ts'
import { migrateDatabase } from '../migrations/migrate.ts'
import { openDatabase } from '../pg/database.ts'
import type { RequestNonce } from './nonce-leads.ts'
import { createNonceMemory } from './nonce-memory.ts'
import { createSpendNonces } from './nonces.ts'
import { insertOrganization } from './organizations.ts'

const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-nonces-')))
const binaries = await embeddedBinaries()
const start = () => startEmbeddedPostgres({ dataDir, binaries, log: silentLog })
let server = await start()
let database = openDatabase({ connection: server.connection, log: silentLog })
let { db } = database
afterAll(async () => {
  await database.stop()
  await server.stop()
  await rm(dataDir, { recursive: true, force: true })
})
await migrateDatabase(db, { log: silentLog })

const organization_id = randomUUID()
/** Of a client whose clock is right, and of one whose clock is ahead. */
const [credential_id, fast] = [randomUUID(), randomUUID()]
const create_time = new Date()
await insertOrganization(db, { organization_id, name: 'n', domain: 'd', create_time })
for (const each of [credential_id, fast])
  await db
    .insertInto('credential')
    .values({
      ...{ credential_id: each, organization_id, role: 'ROLE_MEMBER', name: '', create_time },
      ...{ api_key_hash: Buffer.from(each), api_key_sealed: Buffer.alloc(1) },
      api_secret_sealed: Buffer.alloc(1),
    })
    .execute()

const use = (ms = 0): RequestNonce => ({
  ...{ credential_id, nonce: randomUUID(), time: new Date(Date.now() + ms) },
  expire_time: new Date(Date.now() + 600_000),
})
const useAhead = (): RequestNonce => ({ ...use(200_000), credential_id: fast })
const spend = async (...uses: RequestNonce[]) => await createSpendNonces(database)(uses)
const remembered = async () => {
  const { rows } = await sql<{ nonce: string }>`select nonce from request_nonce`.execute(db)
  return new Set(rows.map(({ nonce }) => nonce))
}

const walWriter = async (): Promise<number | undefined> => {
  const { rows } = await sql<{ pid: number }>`
    select pid from pg_stat_activity where backend_type = 'walwriter'`.execute(db)
  return rows[0]?.pid
}

/** Keeps what was not committed to disk in the memory of the server, until it crashes. */
const holdBack = async () => {
  const pid = (await walWriter())!
  process.kill(pid, 'SIGSTOP')
  return async () => {
    process.kill(pid, 'SIGKILL')
    await waitFor('the database is back', async () => {
      const now = await walWriter().catch(() => undefined)
      return now !== undefined && now !== pid
    })
  }
}

test('a nonce that a crash has forgotten is not accepted again', { timeout: 60_000 }, async () => {
  const crash = await holdBack()
  const [current, late] = [use(), use(-200_000)]
  const [ahead, unspent] = [useAhead(), useAhead()]
  expect(await spend(ahead)).toEqual(['spent'])
  expect(await spend(current, late)).toEqual(['spent', 'spent'])
  await crash()
  const kept = await remembered()
  // Otherwise nothing is shown here: these two were not on disk, and the third was.
  expect([current, late, ahead].map(({ nonce }) => kept.has(nonce))).toEqual([false, false, true])
  expect(await spend(current, late, ahead)).toEqual(['unsure', 'unsure', 'reused'])
  // No nonce of that time is accepted: it cannot be distinguished from a lost one.
  expect(await spend({ ...use(), time: current.time }, use(-200_000))).toEqual(['unsure', 'unsure'])
  // A snapshot of the disk looks like a crash, and lacks nonces ahead of the clock.
  expect(await spend(unspent)).toEqual(['unsure'])
  await waitFor('nonces are trusted again', async () => (await spend(use()))[0] === 'spent')
  expect(await spend(current, late, unspent)).toEqual(['unsure', 'unsure', 'unsure'])
  // A clock that is ahead by as much as before is not held up for longer than others.
  await waitFor('they are of its clock too', async () => (await spend(useAhead()))[0] === 'spent')
})

test('what an operation wrote after its nonce keeps the nonce', { timeout: 60_000 }, async () => {
  const crash = await holdBack()
  const spent = use()
  expect(await spend(spent)).toEqual(['spent'])
  const update_time = new Date()
  await db.updateTable('organization').set({ update_time }).execute()
  await crash()
  expect(await spend(spent)).toEqual(['reused'])
})

test('after a start of the server only later nonces are spent', { timeout: 60_000 }, async () => {
  await createNonceMemory(db).begin()
  await waitFor('nonces are trusted again', async () => (await spend(use()))[0] === 'spent')
  const [before, unspent] = [use(), use()]
  expect(await spend(before)).toEqual(['spent'])
  await database.stop()
  await server.stop()
  server = await start()
  database = openDatabase({ connection: server.connection, log: silentLog })
  db = database.db
  // Before any check too: the files may be an older copy, in which they were spent unseen.
  expect(await spend(before, unspent)).toEqual(['reused', 'unsure'])
  const untrustedMs = await createNonceMemory(db).begin()
  expect(untrustedMs).toBeLessThanOrEqual(2_000)
  await delay(untrustedMs)
  expect(await spend(use())).toEqual(['spent'])
  expect(await spend(before, unspent)).toEqual(['reused', 'unsure'])
})

test('a session that has lost its prepared statement costs no caller a nonce', async () => {
  const single = openDatabase({ connection: server.connection, log: silentLog, max: 1 })
  const spendBy = createSpendNonces(single)
  const [before, after] = [use(), use()]
  expect(await spendBy([before])).toEqual(['spent'])
  await sql`deallocate all`.execute(single.db)
  expect(await spendBy([after])).toEqual(['spent'])
  expect(await spendBy([after])).toEqual(['reused'])
  await single.stop()
})
