import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { silentLog } from '../../lib/log.ts'
import { openDatabase } from './database.ts'

const fresh = await freshDatabase()

const open = (max: number) => {
  const database = openDatabase({ connection: fresh.connection, log: silentLog, max })
  onTestFinished(database.stop)
  return database
}

/** Takes a lock in a transaction and keeps it until the returned function is called. */
const hold = async (name: number) => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { promise: held, resolve: isHeld } = Promise.withResolvers<void>()
  const done = fresh.db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(${name}::int8)`.execute(trx)
    isHeld()
    await ended
  })
  await held
  return async () => {
    end()
    await done
  }
}

test('transactions of one organization that wait for a lock leave connections to the others', async () => {
  const { shareOf, pool } = open(10)
  const letGo = await hold(71)
  const waiting = Array.from({ length: 30 }, () =>
    shareOf('noisy')
      .transaction()
      .execute((trx) => sql`select pg_advisory_xact_lock(71::int8)`.execute(trx)),
  )
  await waitFor('its share is used up', () => pool.totalCount - pool.idleCount === 8)
  for (let count = 0; count < 20; count++) {
    const { rows } = await sql<{ one: number }>`select 1 as one`.execute(shareOf(`quiet-${count}`))
    expect(rows).toEqual([{ one: 1 }])
  }
  expect(pool.totalCount - pool.idleCount).toBe(8)
  await letGo()
  await Promise.all(waiting)
  expect(pool.totalCount - pool.idleCount).toBe(0)
})

test('a failed statement and a lost connection give the share back', async () => {
  const { shareOf } = open(2)
  for (let count = 0; count < 10; count++) {
    await expect(sql`select 1 / 0`.execute(shareOf('a'))).rejects.toThrow()
    await expect(
      sql`select pg_terminate_backend(pg_backend_pid())`.execute(shareOf('a')),
    ).rejects.toThrow()
  }
  // The pool notices the end of a connection a moment later.
  const works = () =>
    sql`select 1`.execute(shareOf('a')).then(
      () => true,
      () => false,
    )
  await waitFor('a connection is found', works)
})

test('a pool of one connection is shared by all', async () => {
  const { shareOf } = open(1)
  const answers = await Promise.all(
    Array.from({ length: 9 }, (_, at) => sql`select ${at}::int`.execute(shareOf(`${at % 3}`))),
  )
  expect(answers).toHaveLength(9)
})
