import { type Kysely, sql } from 'kysely'
import { expect, onTestFinished, test, vi } from 'vitest'
import { asOwner, freshDatabase } from '../../../test/helpers/database.ts'
import { silentLog } from '../../lib/log.ts'
import { openDatabase } from './database.ts'
import { isDatabaseUnavailable, isUniqueViolation } from './errors.ts'
import type { Tables } from './tables.ts'

const { db, connection } = await freshDatabase()

test('values keep their meaning: int8 is a number, numeric a bigint, a day text, a time exact', async () => {
  const { rows } = await sql`
    select 9007199254740991::int8 as int8, 115792089237316195423570985008687907853269984665640564039457584007913129639935::numeric(78) as amount,
      '2026-11-01'::date as day, '2026-11-01T00:00:00.123Z'::timestamptz as time, '\\x00ff'::bytea as bytes`.execute(
    db,
  )
  expect(rows).toEqual([
    {
      int8: Number.MAX_SAFE_INTEGER,
      amount: 2n ** 256n - 1n,
      day: '2026-11-01',
      time: new Date('2026-11-01T00:00:00.123Z'),
      bytes: Buffer.of(0, 255),
    },
  ])
  await expect(sql`select 9007199254740992::int8`.execute(db)).rejects.toThrow('does not fit')
})

test('no plan takes several cores, whatever the server is set to', async () => {
  const workersOf = async (database: Kysely<Tables>): Promise<string> => {
    const { rows } = await sql<{ value: string }>`
      select current_setting('max_parallel_workers_per_gather') as value`.execute(database)
    return rows[0]!.value
  }
  const name = sql.ref(connection.database)
  await sql`alter database ${name} set max_parallel_workers_per_gather = 4`.execute(db)
  const direct = openDatabase({ connection, log: silentLog, max: 1 })
  onTestFinished(direct.stop)
  expect(await workersOf(direct.db)).toBe('0')
  expect(await workersOf(direct.shareOf('an organization'))).toBe('0')
  // A pooler takes no settings at the start of a connection.
  const pooled = openDatabase({
    connection: { ...connection, isPooled: true },
    ...{ log: silentLog, max: 1 },
  })
  onTestFinished(pooled.stop)
  expect(await pooled.db.transaction().execute(workersOf)).toBe('0')
})

test('connections of a burst are still open for the next one, minutes later', async () => {
  const { db, pool, stop } = openDatabase({ connection, log: silentLog, max: 3 })
  onTestFinished(stop)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  await Promise.all(Array.from({ length: 3 }, () => sql`select 1`.execute(db)))
  vi.advanceTimersByTime(300_000)
  expect(pool.totalCount).toBe(3)
  vi.advanceTimersByTime(600_000)
  expect(pool.totalCount).toBe(0)
})

test('connections that the server ends are replaced, and the process lives', async () => {
  const database = openDatabase({ connection, log: silentLog, max: 4 })
  const busy = Array.from({ length: 4 }, () =>
    sql`select pg_sleep(60)`.execute(database.db).catch((error: unknown) => error),
  )
  await expect.poll(async () => await backends()).toBeGreaterThan(3)
  await terminateAll()
  for (const error of await Promise.all(busy)) expect(isDatabaseUnavailable(error)).toBe(true)
  const works = () =>
    sql`select 1`.execute(database.db).then(
      () => true,
      () => false,
    )
  await expect.poll(works).toBe(true)
  // Now idle ones.
  await terminateAll()
  await expect.poll(works).toBe(true)
  await database.stop()
})

test('a statement that takes too long ends', async () => {
  const database = openDatabase({ connection, log: silentLog, statementTimeoutMs: 50 })
  const error = await sql`select pg_sleep(5)`.execute(database.db).catch((reason) => reason)
  expect(isDatabaseUnavailable(error)).toBe(true)
  await database.stop()
})

test.each([
  { host: '/nowhere', user: 'nologin', database: 'none' },
  { host: '127.0.0.1', port: 1, user: 'nologin', database: 'none' },
  { connectionString: 'postgres://nologin@127.0.0.1:1/none' },
])('a server that is not there is unavailable: %o', async (nowhere) => {
  const database = openDatabase({ connection: nowhere, log: silentLog })
  const error = await sql`select 1`.execute(database.db).catch((reason) => reason)
  expect(isDatabaseUnavailable(error)).toBe(true)
  await database.stop()
})

test('a full pool is unavailable rather than silent', { timeout: 20_000 }, async () => {
  const database = openDatabase({ connection, log: silentLog, max: 1 })
  const held = await database.pool.connect()
  const error = await sql`select 1`.execute(database.db).catch((reason) => reason)
  expect(isDatabaseUnavailable(error)).toBe(true)
  held.release()
  await database.stop()
})

test('a broken rule is not unavailability', async () => {
  const lease = { name: 'a', holder: '018f2c5e-0000-7000-8000-000000000000', epoch: 1 }
  const row = { ...lease, expire_time: new Date() }
  await db.insertInto('lease').values(row).execute()
  const error = await db
    .insertInto('lease')
    .values(row)
    .execute()
    .catch((reason) => reason)
  expect(isDatabaseUnavailable(error)).toBe(false)
  expect(isUniqueViolation(error)).toBe(true)
  expect(isUniqueViolation(error, 'lease_pkey')).toBe(true)
  expect(isUniqueViolation(error, 'other_key')).toBe(false)
})

const backends = async (): Promise<number> =>
  await asOwner('embedded', async (owner) => {
    const { rows } = await owner.query(
      "select count(*)::int as count from pg_stat_activity where datname = $1 and state = 'active'",
      [connection.database],
    )
    return rows[0].count
  })

const terminateAll = async (): Promise<void> => {
  await asOwner('embedded', (owner) =>
    owner.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
      connection.database,
    ]),
  )
}
