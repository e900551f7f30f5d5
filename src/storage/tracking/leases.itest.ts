import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import type { Engine } from '../../../test/helpers/postgres.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { Db } from '../pg/database.ts'
import { acquireLease, assertLease, LeaseLostError, releaseLease, renewLease } from './leases.ts'

describe.each<Engine>(['embedded', 'system'])('leases on %s', (engine) => {
  describe.skipIf(!hasEngine(engine))('a server', () => {
    let db: Db
    beforeAll(async () => {
      const database = await freshDatabase(engine)
      db = database.db
      return database.stop
    })

    const claimOf = (ttl_ms: number) => ({ name: randomUUID(), holder: randomUUID(), ttl_ms })

    const expire = ({ name }: { name: string }) =>
      sql`update lease set expire_time = clock_timestamp() where name = ${name}`.execute(db)
    const hasWaiters = async () => {
      const { rows } = await sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
      return rows.length > 0
    }

    test('one of many takes it, keeps it, and gives it back', async () => {
      const { name } = claimOf(0)
      const claims = Array.from({ length: 20 }, () => ({ ...claimOf(60_000), name }))
      const results = await Promise.all(claims.map((claim) => acquireLease(db, claim)))
      expect(results.filter(Boolean)).toEqual([{ epoch: 1 }])
      const holder = claims[results.findIndex(Boolean)]!
      const rival = claims.find((claim) => claim !== holder)!
      expect(await acquireLease(db, holder)).toEqual({ epoch: 1 })
      expect(await renewLease(db, { ...holder, epoch: 1 })).toBe(true)
      expect(await renewLease(db, { ...rival, epoch: 1 })).toBe(false)
      await releaseLease(db, { ...rival, epoch: 1 })
      expect(await acquireLease(db, rival)).toBeUndefined()
      await releaseLease(db, { ...holder, epoch: 1 })
      expect((await acquireLease(db, rival))?.epoch).toBeGreaterThan(1)
    })

    test('an expired one is taken over, and the old holder can neither renew nor write', async () => {
      const old = claimOf(60_000)
      const next = { ...claimOf(60_000), name: old.name }
      const { epoch } = (await acquireLease(db, old))!
      await db.transaction().execute((trx) => assertLease(trx, old.name, epoch))
      expect(await acquireLease(db, next)).toBeUndefined()
      await expire(old)
      expect(await acquireLease(db, next)).toEqual({ epoch: epoch + 1 })
      expect(await renewLease(db, { ...old, epoch })).toBe(false)
      expect(await acquireLease(db, old)).toBeUndefined()
      await expect(
        db.transaction().execute((trx) => assertLease(trx, old.name, epoch)),
      ).rejects.toThrow(LeaseLostError)
    })

    test('a renewal does not wait for writers, which may overlap without end', async () => {
      const claim = claimOf(60_000)
      const { epoch } = (await acquireLease(db, claim))!
      await db.transaction().execute(async (trx) => {
        await assertLease(trx, claim.name, epoch)
        await db.transaction().execute(async (second) => {
          await sql`set local lock_timeout = '10s'`.execute(second)
          expect(await renewLease(second, { ...claim, epoch })).toBe(true)
        })
      })
    })

    test('a takeover waits for a write that had already proved its right', async () => {
      const old = claimOf(60_000)
      const next = { ...claimOf(60_000), name: old.name }
      const { epoch } = (await acquireLease(db, old))!
      await expire(old)
      const order: string[] = []
      const proved = Promise.withResolvers<void>()
      const end = Promise.withResolvers<void>()
      const write = db.transaction().execute(async (trx) => {
        await assertLease(trx, old.name, epoch)
        proved.resolve()
        await end.promise
        order.push('written')
      })
      await proved.promise
      const takeover = acquireLease(db, next).then(() => order.push('taken over'))
      await waitFor('the takeover waits', hasWaiters)
      end.resolve()
      await Promise.all([write, takeover])
      expect(order).toEqual(['written', 'taken over'])
    })
  })
})
