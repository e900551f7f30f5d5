import { sql } from 'kysely'
import { afterAll, expect, it } from 'vitest'
import { startKillableDatabase } from '../../../test/helpers/killable-database.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { createAuditTrail } from './trail.ts'

const database = await startKillableDatabase()
const { db, killDatabase } = database
const trail = createAuditTrail({ db, clock: systemClock, ids: systemIds, log: silentLog })
afterAll(async () => {
  await trail.stop()
  await database.stop()
})

it.each(['GetWebhookSigningSecret', 'ListWebhookHeaders'])(
  'the event of %s survives a crash of the database right after the secret was shown',
  async (operation) => {
    // Without this the server would write the event to disk within 200 ms, and the crash could come too late.
    await sql`alter system set wal_writer_delay = '10s'`.execute(db)
    await sql`select pg_reload_conf()`.execute(db)
    const subject = {
      actor_type: 'ACTOR_TYPE_CREDENTIAL' as const,
      client: '192.0.2.1',
      service: 'c',
    }
    await trail.perform({ ...subject, operation }, killDatabase)
    const { rows } = await sql`
    select operation from audit_pending where operation = ${operation}`.execute(db)
    expect(rows).toEqual([{ operation }])
  },
)
