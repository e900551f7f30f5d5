import { sql } from 'kysely'
import { afterAll, describe, expect, test } from 'vitest'
import { silentLog } from '../../src/lib/log.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { prepared } from '../../src/storage/pg/prepared.ts'
import { startTestApp, type TestApp } from '../helpers/app.ts'
import { freshDatabase } from '../helpers/database.ts'
import { startPgBouncer } from '../helpers/pgbouncer.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'

const database = await freshDatabase()
const bouncer = await startPgBouncer(database.connection, { sessions: 6 })
const chains = createScriptedChains()
const { url = '', directUrl: direct_url = '' } = bouncer ?? {}
const config = { database: { url, direct_url, pool_size: 8, worker_pool_size: 8 } }
const [first, second] = (await startBoth()) as [TestApp, TestApp]
// After the services, which stop before it.
afterAll(() => bouncer?.stop())

async function startBoth(): Promise<TestApp[]> {
  if (!bouncer) return []
  const one = await startTestApp({ chains, database, config })
  return [one, await startTestApp({ chains, beside: one, config })]
}

describe.skipIf(!bouncer)('PgBouncer in transaction mode', () => {
  test('settings belong to the transaction, and nothing is prepared', async () => {
    const pooled = openDatabase({
      connection: { connectionString: url, isPooled: true },
      log: silentLog,
      statementTimeoutMs: 1_234,
    })
    try {
      const show = async (db: typeof pooled.db) =>
        (await sql<{ statement_timeout: string }>`show statement_timeout`.execute(db)).rows[0]
      const inside = await pooled.db.transaction().execute((trx) => show(trx))
      expect(inside).toEqual({ statement_timeout: '1234ms' })
      expect(await show(pooled.db)).toEqual({ statement_timeout: '0' })
      // Behind a pooler a name would be unknown to the next session, or known with another text.
      const asked = Array.from({ length: 40 }, (_, index) =>
        sql<{ n: number }>`${sql.raw(prepared)} select ${index}::int4 + 1 as n`.execute(pooled.db),
      )
      expect((await Promise.all(asked)).map(({ rows }) => rows[0]?.n)).toEqual(
        Array.from({ length: 40 }, (_, index) => index + 1),
      )
      const { rows } = await sql`select * from pg_prepared_statements`.execute(pooled.db)
      expect(rows).toEqual([])
    } finally {
      await pooled.stop()
    }
  })

  test('blocks are tracked under a lease, and requests of both processes are answered', async () => {
    const { member } = await first.createTenant()
    const { json } = await first.call(member, 'c/RegisterWallet', { name: 'w', confirmation: 1 })
    const address = `0x${'5a'.repeat(20)}`
    const { wallet_id } = json
    await first.call(member, 'c/RegisterAddress', { wallet_id, address })
    const parsed = chains.c.parseAddress(address)
    if (!parsed.ok) throw new Error(parsed.detail)
    for (let value = 1n; value <= 20n; value++)
      chains.c.mine([{ movements: [{ to: parsed.bytes, value }] }])
    const listOf = (app: TestApp) =>
      app.call(member, 'c/ListTransfers', { wallet_id, page_size: 100 })
    await waitFor('all transfers', async () => (await listOf(second)).json.transfers?.length === 20)
    // More at once than there are sessions.
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) => listOf(index % 2 ? first : second)),
    )
    expect([...new Set(answers.map(({ status }) => status))]).toEqual([200])
    const { rows } = await sql<{ holders: number }>`
      select count(distinct holder)::int4 as holders from lease where expire_time > now()
      group by name`.execute(database.db)
    expect(rows.every(({ holders }) => holders === 1)).toBe(true)
  })

  test('a change in one process reaches the other at once', async () => {
    const { member, admin } = await first.createTenant()
    expect((await second.call(member, 'c/ListWallets')).status).toBe(200)
    await first.call(admin, 'admin/DeleteCredential', member)
    expect((await second.call(member, 'c/ListWallets')).status).toBe(401)
    // The listener uses the server itself.
    const { rows } = await sql<{ count: number }>`
      select count(*)::int4 as count from pg_stat_activity
      where application_name = 'portolan listener' and datname = current_database()`.execute(
      database.db,
    )
    expect(rows).toEqual([{ count: 2 }])
  })

  test('a restart of the pooler is survived', async () => {
    const { member } = await first.createTenant()
    await bouncer!.kill()
    expect((await first.call(member, 'c/ListWallets')).status).toBe(503)
    await bouncer!.start()
    await waitFor('requests are answered again', async () => {
      const answers = await Promise.all(
        [first, second].map((app) => app.call(member, 'c/ListWallets')),
      )
      return answers.every(({ status }) => status === 200)
    })
  })
})
