import { sql } from 'kysely'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { silentLog } from '../../lib/log.ts'
import { type Db, openDatabase } from '../pg/database.ts'
import {
  claimDeliveries,
  listQueuedOf,
  listQueuedWebhooks,
  rowsPerLook,
  webhooksPerLook,
} from './delivery-claims.ts'
import { endQueue, holdQueue, queuePage, restartQueue } from './queue-pages.ts'

const { connection } = await freshDatabase()
// One connection: a session flushes only its own counters when it is asked to.
const { db, stop } = openDatabase({ connection, log: silentLog, max: 1 })
afterAll(stop)

/** Queues notifications of new webhooks, so many of each. */
const queue = async (organization_id: string, webhooks: number, each = 1) => {
  await sql`
    insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence, webhook_status,
      next_attempt_time, retry_step)
    select gen_random_uuid(), ${organization_id}, webhook_id, sequence, 'WEBHOOK_STATUS_PENDING', now(), 0
    from (select gen_random_uuid() as webhook_id from generate_series(1, ${webhooks}::int4)) w,
      generate_series(1, ${each}::int4) sequence`.execute(db)
}

const large = '00000000-0000-7000-8000-000000000001'
const small = '00000000-0000-7000-8000-000000000002'

it('a look reads some webhooks of an organization that has many, and all of one that has few', async () => {
  await queue(large, 3 * webhooksPerLook - 10, 2)
  await queue(small, 5, 2)
  const { webhooks, longer, last } = await listQueuedWebhooks(db)
  const of = (id: string) => webhooks.filter(({ organization_id }) => organization_id === id)
  expect(of(large)).toHaveLength(webhooksPerLook)
  expect(of(small)).toHaveLength(5)
  expect(last).toBeUndefined()
  expect(longer).toMatchObject([{ organization_id: large }])
  const seen = new Set(of(large).map(({ webhook_id }) => webhook_id))
  let end = longer[0]!
  for (let looks = 1; looks <= 2; looks++) {
    const more = await listQueuedOf(db, end)
    expect(more).toHaveLength(looks === 1 ? webhooksPerLook : webhooksPerLook - 10)
    for (const { webhook_id } of more) seen.add(webhook_id)
    end = more.at(-1)!
  }
  expect(seen.size).toBe(3 * webhooksPerLook - 10)
})

it.each([
  ['holding back', holdQueue],
  ['restarting', restartQueue],
  ['ending', endQueue],
] as const)('%s the queue of a webhook reads no other queue', async (_what, change) => {
  const bench = await createWalletBench(db, 'c')
  const { call, organization_id } = await bench.createCaller()
  const { webhook_id } = await call('RegisterWebhook', {
    webhook_endpoint: 'https://receiver.invalid',
    confirmation: 1,
  })
  await sql`truncate delivery_queue`.execute(db)
  // Of as many organizations: an index that begins with few different values can be skipped through.
  await sql`
    insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence, webhook_status,
      next_attempt_time, retry_step)
    select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 'WEBHOOK_STATUS_PENDING', now(), 0
    from generate_series(1, 50000)`.execute(db)
  await sql`
    insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence, webhook_status,
      next_attempt_time, retry_step)
    select gen_random_uuid(), ${organization_id}, ${webhook_id}, sequence, 'WEBHOOK_STATUS_PENDING',
      now() + interval '1 hour', 3
    from generate_series(1, 20) sequence`.execute(db)
  await sql`analyze delivery_queue`.execute(db)
  const before = await blocksUsed()
  await db.transaction().execute(async (trx) => {
    await change(trx, webhook_id, new Date())
  })
  // Its entries and their pages. The whole index has more than 500.
  expect((await blocksUsed()) - before).toBeLessThan(250)
})

/** Blocks of the queue and its indexes that were looked at. Rows would not show the walk through an index. */
const blocksUsed = async (): Promise<number> => {
  await sql`select pg_stat_force_next_flush()`.execute(db)
  const { rows } = await sql<{ count: number }>`
    select (heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)::int8 as count
    from pg_statio_user_tables where relname = 'delivery_queue'`.execute(db)
  return rows[0]!.count
}

const changes = [
  ['holding back', holdQueue],
  ['restarting', restartQueue],
  ['ending', async (trx: Db, webhook_id: string) => (await endQueue(trx, webhook_id)).isMore],
] as const

it.each(changes)('%s a queue continues while its rows are claimed', async (_what, change) => {
  const other = openDatabase({ connection, log: silentLog })
  onTestFinished(other.stop)
  const bench = await createWalletBench(db, 'c')
  const { call, organization_id } = await bench.createCaller()
  const { webhook_id } = await call('RegisterWebhook', {
    webhook_endpoint: 'https://receiver.invalid',
    confirmation: 1,
  })
  await sql`
    insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence, webhook_status,
      next_attempt_time, retry_step)
    select gen_random_uuid(), ${organization_id}, ${webhook_id}, sequence, 'WEBHOOK_STATUS_PENDING',
      now() - interval '1 hour', 3
    from generate_series(1, ${queuePage + 5}::int4) sequence`.execute(db)
  const [now, expire] = [new Date(Date.now() - 1_000), new Date(Date.now() + 60_000)]
  let isMore: Promise<boolean> | undefined
  await db.transaction().execute(async (trx) => {
    await claimDeliveries(trx, [{ organization_id, webhook_id, count: 100 }], { now, expire })
    isMore = other.db.transaction().execute((page) => change(page, webhook_id, new Date(0)))
    await waitFor('the page waits for the claim', async () => {
      const { rows } = await sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`.execute(
        other.db,
      )
      return rows.length > 0
    })
  })
  expect(await isMore).toBe(true)
})

it('looks that continue after each other see every organization', async () => {
  await sql`truncate delivery_queue`.execute(db)
  await sql`
    insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence, webhook_status,
      next_attempt_time, retry_step)
    select gen_random_uuid(), organization_id, gen_random_uuid(), 1, 'WEBHOOK_STATUS_PENDING', now(), 0
    from (select gen_random_uuid() as organization_id from generate_series(1, ${rowsPerLook + 50}::int4)) o,
      generate_series(1, 2)`.execute(db)
  const seen = new Set<string>()
  let after: string | undefined
  let looks = 0
  do {
    const look = await listQueuedWebhooks(db, after)
    expect(look.webhooks.length).toBeLessThanOrEqual(rowsPerLook)
    for (const { webhook_id } of look.webhooks) seen.add(webhook_id)
    after = look.last
    looks++
  } while (after !== undefined)
  expect(seen.size).toBe(2 * (rowsPerLook + 50))
  expect(looks).toBe(3)
})
