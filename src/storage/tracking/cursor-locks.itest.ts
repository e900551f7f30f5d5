import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import type { Engine } from '../../../test/helpers/postgres.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { Db } from '../pg/database.ts'
import { awaitCursor, findCursor, lockCursor, setCursor } from './blocks.ts'
import { ensureNetwork } from './networks.ts'

describe.each<Engine>(['embedded', 'system'])('the lock of the cursor on %s', (engine) => {
  describe.skipIf(!hasEngine(engine))('a server', () => {
    let db: Db
    let network_id: number
    beforeAll(async () => {
      const database = await freshDatabase(engine)
      db = database.db
      const create_time = new Date()
      network_id = await ensureNetwork(db, { chain: 'c', network: 'mainnet', create_time })
      return database.stop
    })

    const move = (trx: Db, block_number: number) =>
      setCursor(trx, {
        network_id,
        block_number,
        block_hash: Buffer.alloc(32),
        update_time: new Date(),
      })
    /** A transaction that keeps the lock until `end` is called. */
    const hold = (lock: typeof awaitCursor) => {
      const end = Promise.withResolvers<void>()
      const locked = Promise.withResolvers<void>()
      const done = db.transaction().execute(async (trx) => {
        await lock(trx, network_id)
        locked.resolve()
        await end.promise
      })
      return {
        locked: locked.promise,
        end: async () => {
          end.resolve()
          await done
        },
      }
    }
    const waiting = async (count: number) =>
      await waitFor(`${count} sessions wait for a lock`, async () => {
        const { rows } = await sql`
          select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
        return rows.length >= count
      })

    it('excludes others before a cursor exists', async () => {
      const writer = hold(lockCursor)
      await writer.locked
      const second = hold(lockCursor)
      await waiting(1)
      await writer.end()
      await second.locked
      await second.end()
    })

    it('lets a writer through beside shared lockers that always overlap', async () => {
      await move(db, 7)
      const order: string[] = []
      let last = hold(awaitCursor)
      await last.locked
      const writer = db.transaction().execute(async (trx) => {
        await lockCursor(trx, network_id)
        order.push('writer')
      })
      await waiting(1)
      for (const name of ['second', 'third', 'fourth']) {
        const next = hold(awaitCursor)
        void next.locked.then(() => order.push(name))
        // Before the one before it ends: queued behind the writer, or granted at once.
        await Promise.race([next.locked, waiting(2)])
        await last.end()
        last = next
        await next.locked
      }
      await last.end()
      await writer
      expect(order).toEqual(['writer', 'second', 'third', 'fourth'])
    })

    it('gives the cursor that the writer before it has stored', async () => {
      await move(db, 10)
      const moved = Promise.withResolvers<void>()
      const stored = Promise.withResolvers<void>()
      const writer = db.transaction().execute(async (trx) => {
        await lockCursor(trx, network_id)
        await move(trx, 11)
        moved.resolve()
        await stored.promise
      })
      await moved.promise
      const readers = [awaitCursor(db, network_id), lockCursor(db, network_id)]
      await waiting(2)
      expect((await findCursor(db, network_id))?.block_number).toBe(10)
      stored.resolve()
      await writer
      const found = await Promise.all(readers)
      expect(found.map((cursor) => cursor?.block_number)).toEqual([11, 11])
    })

    it('excludes a process of an older version, which locks the row alone', async () => {
      const ofOlder =
        (mode: string) =>
        async (trx: Db): Promise<undefined> => {
          await sql`select 1 from tracker_cursor where network_id = ${network_id} ${sql.raw(mode)}`.execute(
            trx,
          )
        }
      for (const [one, other] of [
        [lockCursor, ofOlder('for share')],
        [ofOlder('for share'), lockCursor],
        [awaitCursor, ofOlder('for update')],
        [ofOlder('for update'), awaitCursor],
      ] as const) {
        const first = hold(one)
        await first.locked
        const second = hold(other)
        await waiting(1)
        await first.end()
        await second.locked
        await second.end()
      }
    })
  })
})
