import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import {
  listQueuedOf,
  listQueuedWebhooks,
  rowsPerLook,
  webhooksPerLook,
} from './delivery-claims.ts'

const { db } = await freshDatabase()

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
