import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWebhookBench } from '../../../test/webhooks/harness.ts'
import { startReceiver } from '../../../test/webhooks/receiver.ts'
import { silentLog } from '../../lib/log.ts'
import { startHistoryRetention } from './history-retention.ts'

const database = await freshDatabase()
const { db, pool } = database
const day = 86_400_000

const listed = async (bench: Awaited<ReturnType<typeof createWebhookBench>>, webhook_id: string) =>
  (await bench.caller.call('ListWebhookHistories', { webhook_id, page_size: 100 }))
    .webhook_histories as { webhook_history_id: string; data: { sequence: number } }[]

it('what came to an end long ago is removed with its attempts, and nothing else is', async () => {
  const bench = await createWebhookBench(database)
  const { clock, caller } = bench
  const receiver = await startReceiver()
  const well = await bench.register(receiver.url)
  const old = await Promise.all(Array.from({ length: 7 }, () => bench.test(well)))
  const again = await bench.test(well)
  const failing = await startReceiver()
  failing.answer((response) => response.writeHead(500).end())
  const bad = await bench.register(failing.url)
  const failed = await bench.test(bad)
  const courier = bench.startCourier()
  await bench.settled(courier)
  // Four days: all attempts of the failing one are spent, and it is not disabled yet.
  await bench.pass(courier, 4 * day)
  expect((await bench.history(failed)).webhook_status).toBe('WEBHOOK_STATUS_FAILED')
  await courier.stop()
  const held = await bench.test(well)
  await pool.query(
    `update delivery_queue set webhook_status = 'WEBHOOK_STATUS_ON_HOLD', next_attempt_time = null
     where webhook_history_id = $1`,
    [held],
  )

  const sweep = async () => {
    const options = { db, clock, log: silentLog, keepMs: 90 * day, batch: 3 }
    const retention = startHistoryRetention(options)
    await waitFor('it sleeps until the next hour', async () => {
      const wake = clock.nextWake()
      if (wake === undefined) return false
      if (wake - clock.now() >= 3_500_000) return true
      // Between two batches.
      await clock.moveTo(wake)
      return false
    })
    await retention.stop()
  }
  await sweep()
  expect(await listed(bench, well)).toHaveLength(9)

  // One of the old ones is asked for again shortly before its time, and delivered then.
  await clock.moveTo(clock.now() + 85 * day)
  const second = bench.startCourier()
  await caller.call('RetryWebhookHistory', { webhook_history_id: again })
  await bench.settled(second)
  await second.stop()
  await clock.moveTo(clock.now() + 2 * day)
  await sweep()
  const left = (await listed(bench, well)).map(({ webhook_history_id }) => webhook_history_id)
  expect(left.sort()).toEqual([again, held].sort())
  for (const webhook_history_id of old)
    expect(await caller.reason('ListWebhookAttempts', { webhook_history_id })).toBe(
      'WEBHOOK_HISTORY_NOT_FOUND',
    )
  // It failed for the last time four days later than it was queued.
  expect(await listed(bench, bad)).toHaveLength(1)
  await clock.moveTo(clock.now() + 4 * day)
  await sweep()
  expect(await listed(bench, bad)).toEqual([])

  const { rows } = await pool.query(
    `select (select count(*)::int4 from delivery_attempt a join delivery d using (webhook_id, sequence)
       where d.webhook_id = any($1)) as attempts,
       (select count(*)::int4 from delivery_attempt a where a.webhook_id = any($1) and not exists (
         select 1 from delivery d where d.webhook_id = a.webhook_id and d.sequence = a.sequence)
       ) as orphans,
       (select count(*)::int4 from delivery_queue q where q.webhook_id = any($1)) as queued`,
    [[well, bad]],
  )
  expect(rows).toEqual([{ attempts: 2, orphans: 0, queued: 1 }])
  // Numbers continue where they were.
  const next = await bench.test(well)
  const numbers = (await listed(bench, well)).find((row) => row.webhook_history_id === next)
  expect(numbers?.data.sequence).toBe(10)
})
