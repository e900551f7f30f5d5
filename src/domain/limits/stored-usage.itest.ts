import { expect, test } from 'vitest'
import { asOwner, freshDatabase } from '../../../test/helpers/database.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import type { RateLimits } from './decision.ts'
import { createLimiter, type Limiter } from './limiter.ts'
import { createUsageStore } from './stored-usage.ts'
import { createManualClock } from './testing/fakes.ts'

const database = await freshDatabase()
const store = createUsageStore(database.db)

const limits: RateLimits = {
  per_second_limit: -1,
  per_hour_limit: 1_000,
  per_day_limit: -1,
  per_month_limit: 1_500,
}

const start = (time = '2026-12-31T22:30:00Z') => {
  const clock = createManualClock(Date.parse(time))
  const open = () => createLimiter({ clock, log: silentLog, store, load_timeout_ms: 60_000 })
  return { clock, open, organization_id: systemIds.uuid() }
}

const admit = async (limiter: Limiter, organization_id: string, cost: number) =>
  await limiter.take({ organization_id, chain: 'c', limits, cost })

test('hour, day and month survive a restart and end with their windows', async () => {
  const { clock, open, organization_id } = start()
  const first = open()
  expect((await admit(first, organization_id, 900)).allowed).toBe(true)
  await first.stop()

  const second = open()
  expect(await admit(second, organization_id, 200)).toMatchObject({
    window: 'hour',
    remaining: 100,
  })
  clock.step(3_600_000)
  expect((await admit(second, organization_id, 600)).allowed).toBe(true)
  expect((await admit(second, organization_id, 1)).window).toBe('month')
  await second.stop()

  clock.step(3_600_000)
  const third = open()
  expect(await admit(third, organization_id, 1)).toMatchObject({ allowed: true, remaining: 999 })
  await third.stop()
})

test('processes on one database agree after they flushed', async () => {
  const { open, organization_id } = start()
  const [a, b] = [open(), open()]
  await admit(a, organization_id, 300)
  await admit(b, organization_id, 300)
  await Promise.all([a.flush(), b.flush()])
  await Promise.all([admit(a, organization_id, 1), admit(b, organization_id, 1)])
  await Promise.all([a.flush(), b.flush()])
  await admit(a, organization_id, 1)
  await a.flush()
  expect((await admit(a, organization_id, 0)).remaining).toBe(397)
  await Promise.all([a.stop(), b.stop()])
})

test('a flush through a broken connection is made up for', async () => {
  const { open, organization_id } = start()
  const limiter = open()
  await admit(limiter, organization_id, 10)
  await asOwner('embedded', (owner) =>
    owner.query(`alter database ${database.connection.database} allow_connections false`),
  )
  const cut = () =>
    asOwner('embedded', (owner) =>
      owner.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
        database.connection.database,
      ]),
    )
  await cut()
  await expect(limiter.flush()).rejects.toThrow()
  expect((await admit(limiter, organization_id, 5)).remaining).toBe(985)
  await asOwner('embedded', (owner) =>
    owner.query(`alter database ${database.connection.database} allow_connections true`),
  )
  await limiter.flush()
  await limiter.stop()
  const next = open()
  expect((await admit(next, organization_id, 0)).remaining).toBe(985)
  await next.stop()
})

test('a commit whose answer was lost is not repeated', async () => {
  const { clock, organization_id } = start()
  let losses = 2
  const lossy = new Proxy(database.db, {
    get: (db, name) => {
      const member: unknown = Reflect.get(db, name)
      if (name !== 'transaction' || losses === 0)
        return typeof member === 'function' ? member.bind(db) : member
      losses -= 1
      return () => ({
        execute: async (work: Parameters<ReturnType<typeof db.transaction>['execute']>[0]) => {
          await db.transaction().execute(work)
          throw new Error('connection lost')
        },
      })
    },
  })
  const limiter = createLimiter({ clock, log: silentLog, store: createUsageStore(lossy) })
  await admit(limiter, organization_id, 10)
  await expect(limiter.flush()).rejects.toThrow('connection lost')
  await admit(limiter, organization_id, 5)
  // The first batch is found committed, the next one is lost in the same way.
  await expect(limiter.flush()).rejects.toThrow('connection lost')
  await limiter.flush()
  expect(losses).toBe(0)
  expect((await admit(limiter, organization_id, 0)).remaining).toBe(985)
  await limiter.stop()
  const totals = await store.load(organization_id, 'c', clock.now())
  expect(totals.map(({ used }) => used)).toEqual([15, 15, 15])
})
