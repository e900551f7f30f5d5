import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { startBehaviour } from '../../../test/webhooks/behaviours.ts'
import { createWebhookBench } from '../../../test/webhooks/harness.ts'
import { recordAttempts } from '../../storage/webhooks/delivery-records.ts'
import { holdDisabled } from '../../storage/webhooks/queue-pages.ts'

const database = await freshDatabase()
const { db } = database
const bench = await createWebhookBench(database)
const { organization_id, call } = bench.caller
const { network_id } = bench.bench

/** Queues notifications for a webhook, so that they are due in the order of their numbers. */
const queue = (webhook_id: string, count: number) =>
  sql`
    with made as (
      insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
        notification_type, data, sequence, create_time)
      select gen_random_uuid(), ${organization_id}::uuid, ${network_id}, ${webhook_id}::uuid,
        'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', n, ${new Date(bench.clock.now())}
      from generate_series(1, ${count}::int4) n
      returning webhook_history_id, sequence)
    insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence,
      webhook_status, next_attempt_time, retry_step)
    select webhook_history_id, ${organization_id}::uuid, ${webhook_id}::uuid, sequence,
      'WEBHOOK_STATUS_PENDING', ${new Date(bench.clock.now() - 3_600_000)}, 0
    from made`.execute(db)

const register = async (count: number, url = 'https://receiver.invalid/') => {
  const webhook_id = await bench.register(url)
  await queue(webhook_id, count)
  return webhook_id
}

const onHold = async (webhook_ids: readonly string[]): Promise<number> => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int4 as count from delivery_queue
    where webhook_id = any(${webhook_ids as string[]}::uuid[]) and next_attempt_time is null
      and webhook_status = 'WEBHOOK_STATUS_ON_HOLD'`.execute(db)
  return rows[0]!.count
}

/** Records that the endpoint of each does not exist any more. */
const recordGone = async (webhook_ids: readonly string[]): Promise<string[]> =>
  await recordAttempts(
    db,
    webhook_ids.map((webhook_id) => ({
      ...{ webhook_history_id: randomUUID(), sequence: 1, organization_id, webhook_id },
      ...{ claim_expire_time: new Date(), is_delivered: false, attempt_time: new Date() },
      ...{ duration_ms: 1, status_code: 410, error: 'gone', response_body: null },
      ...{ request_headers: null, response_headers: null, next_attempt_time: null },
      ...{ is_gone: true, was_failing: false },
    })),
    new Date(bench.clock.now()),
  )

it('records of attempts disable webhooks and change none of what is queued for them', async () => {
  const webhook_ids = [await register(1_200), await register(1_200), await register(1_200)]
  expect((await recordGone(webhook_ids)).toSorted()).toEqual(webhook_ids.toSorted())
  expect(await onHold(webhook_ids)).toBe(0)
  const { webhooks } = await call('ListWebhooks')
  expect(webhooks.filter(({ enabled }: { enabled: boolean }) => enabled)).toEqual([])
  const { rows } = await sql`
    select from operational_event where kind = 'webhook_disabled'
      and subject = any(${webhook_ids}) and organization_id = ${organization_id}`.execute(db)
  expect(rows).toHaveLength(3)
  // Once only.
  expect(await recordGone(webhook_ids)).toEqual([])
  // At once: no change of the webhook may be under way.
  for (const webhook_id of webhook_ids) {
    expect(await holdDisabled(db, webhook_id, bench.clock.now())).toBe(true)
    expect(await holdDisabled(db, webhook_id, bench.clock.now())).toBe(false)
  }
  expect(await onHold(webhook_ids)).toBe(3_600)
})

it('couriers hold back at once what is queued for webhooks that are disabled, page by page', async () => {
  const { url, requests } = await startBehaviour((socket) => {
    socket.write('HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n')
  })
  const gone = await register(2_500, url)
  // Disabled by another process, which ended then.
  const other = await register(2_500, url)
  await recordGone([other])
  bench.startCourier({ limits: { perReceiver: 1, total: 10 } })
  // The clock is stopped.
  await waitFor('all is held back', async () => (await onHold([gone, other])) === 5_000)
  expect(requests()).toBe(1)
})

it('what was not held back yet keeps its place when the webhook is enabled again', async () => {
  const webhook_id = await register(2_500)
  await recordGone([webhook_id])
  await holdDisabled(db, webhook_id, bench.clock.now())
  expect(await onHold([webhook_id])).toBe(1_000)
  await bench.clock.moveTo(bench.clock.now() + 1_000)
  await call('EnableWebhook', { webhook_id })
  const { rows } = await sql<{ sequence: number }>`
    select sequence from delivery_queue where webhook_id = ${webhook_id}
    order by next_attempt_time, sequence`.execute(db)
  expect(rows.map(({ sequence }) => sequence)).toEqual(
    Array.from({ length: 2_500 }, (_, at) => at + 1),
  )
})
