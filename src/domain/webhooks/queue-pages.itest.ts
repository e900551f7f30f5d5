import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import type { Db } from '../../storage/pg/database.ts'
import { lockCursor } from '../../storage/tracking/blocks.ts'
import { holdDisabled } from '../../storage/webhooks/queue-pages.ts'

const { db } = await freshDatabase()
const bench = await createWalletBench(db, 'c')
const { network_id } = bench
const { call, organization_id } = await bench.createCaller()
// Six pages. A block runs after the first one, unless its database process gets no CPU in the pause after it.
const many = 5_500
const someButNotAll = expect.toSatisfy((count: number) => count > 0 && count < many, 'some')

type Status = 'PENDING' | 'ON_HOLD' | 'FAILED'

/** A webhook with many undelivered notifications. */
const register = async (status: Status = 'PENDING') => {
  const request = { webhook_endpoint: 'https://receiver.invalid/', confirmation: 1 }
  const { webhook_id } = await call('RegisterWebhook', request)
  await sql`
    with made as (
      insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
        notification_type, data, sequence, create_time)
      select gen_random_uuid(), ${organization_id}::uuid, ${network_id}, ${webhook_id}::uuid,
        'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', n, now() - interval '1 hour'
      from generate_series(1, ${many}::int4) n
      returning webhook_history_id, sequence)
    insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence,
      webhook_status, next_attempt_time, retry_step)
    select webhook_history_id, ${organization_id}::uuid, ${webhook_id}::uuid, sequence,
      ${`WEBHOOK_STATUS_${status}`}, ${status === 'PENDING' ? sql`now() + interval '1 hour'` : null}, 3
    from made`.execute(db)
  return webhook_id as string
}

/** How many notifications have each status, and how many of them are due. */
const counts = async (webhook_id: string) => {
  const { rows } = await sql<{ status: string; count: number; due: number }>`
    select webhook_status as status, count(*)::int4 as count,
      count(*) filter (where next_attempt_time <= now())::int4 as due
    from delivery_queue where webhook_id = ${webhook_id} group by 1`.execute(db)
  return Object.fromEntries(rows.map(({ status, count, due }) => [status, [count, due]]))
}

const waiting = async () => {
  const { rows } = await sql`
    select from pg_locks l join pg_stat_activity a using (pid)
    -- Of rows: the server itself may wait for other locks.
    where not l.granted and l.locktype in ('transactionid', 'tuple', 'advisory')
      and a.datname = current_database()`.execute(db)
  return rows.length
}

/** Locks the webhook as a block does that notifies it, and looks while a call is under way. */
const between = (
  webhook_id: string,
  begin: () => Promise<unknown>,
): Promise<Record<string, number[]>> =>
  whileLocked(
    (trx) =>
      sql`select from webhook where webhook_id = ${webhook_id} for no key update`.execute(trx),
    begin,
    () => counts(webhook_id),
  )

/** Takes a lock that a call waits for, and looks with the lock as soon as the call gives it back. */
const whileLocked = async <found>(
  take: (trx: Db) => Promise<unknown>,
  begin: () => Promise<unknown>,
  look: () => Promise<found>,
): Promise<found> => {
  const lock = <result>(work: () => Promise<result>) =>
    db.transaction().execute(async (trx) => {
      await take(trx)
      return await work()
    })
  const held = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const holding = lock(() => {
    held.resolve()
    return release.promise
  })
  await held.promise
  const running = begin()
  await waitFor('the call waits', async () => (await waiting()) === 1)
  const block = lock(look)
  await waitFor('the block waits', async () => (await waiting()) === 2)
  release.resolve()
  await holding
  const found = await block
  await running
  return found
}

const enabled = async (webhook_id: string) => {
  const { webhooks } = await call('ListWebhooks', { webhook_id })
  return webhooks[0]?.enabled
}

it('a block does not wait until all notifications of a webhook are held back, or released', async () => {
  const webhook_id = await register()
  const [held, all] = ['WEBHOOK_STATUS_ON_HOLD', 'WEBHOOK_STATUS_PENDING']
  expect(await between(webhook_id, () => call('DisableWebhook', { webhook_id }))).toMatchObject({
    [held]: [someButNotAll, 0],
  })
  expect(await counts(webhook_id)).toEqual({ [held]: [many, 0] })
  expect(await enabled(webhook_id)).toBe(false)
  // The lowest numbers first, and it is enabled when all are due.
  expect(await between(webhook_id, () => call('EnableWebhook', { webhook_id }))).toMatchObject({
    [held]: [someButNotAll, 0],
  })
  expect(await counts(webhook_id)).toEqual({ [all]: [many, many] })
  expect(await enabled(webhook_id)).toBe(true)
})

it('a block does not wait until all notifications are retried, restarted or ended', async () => {
  const failed = await register('FAILED')
  let retried: unknown
  const retry = async () => {
    retried = await call('RetryWebhookHistory', { webhook_id: failed })
  }
  expect(await between(failed, retry)).toMatchObject({
    WEBHOOK_STATUS_PENDING: [someButNotAll, someButNotAll],
  })
  expect(retried).toEqual({ retried_count: many })
  expect(await counts(failed)).toEqual({ WEBHOOK_STATUS_PENDING: [many, many] })

  const webhook_id = await register()
  const webhook_endpoint = 'https://other.invalid/'
  const moved = await between(webhook_id, () =>
    call('UpdateWebhook', { webhook_id, webhook_endpoint }),
  )
  expect(moved).toEqual({ WEBHOOK_STATUS_PENDING: [many, someButNotAll] })
  expect(await counts(webhook_id)).toEqual({ WEBHOOK_STATUS_PENDING: [many, many] })

  const left = await between(webhook_id, () => call('RemoveWebhook', { webhook_id }))
  expect(left).toMatchObject({ WEBHOOK_STATUS_FAILED: [someButNotAll, 0] })
  expect(await counts(webhook_id)).toEqual({ WEBHOOK_STATUS_FAILED: [many, 0] })
  expect(await enabled(webhook_id)).toBeUndefined()
})

/** Notes transfers of ten in each block from one on, as blocks do it. */
const note = (ids: string[], first: number, count: number) =>
  sql`
  insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
    notification_type, data, block_number, due_block, create_time)
  select gen_random_uuid(), ${organization_id}::uuid, ${network_id}, w.webhook_id,
    'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', n.block,
    n.block + w.confirmation - 1, now()
  from webhook w, lateral (select ${first}::int8 + n / 10 as block
    from generate_series(0, ${count - 1}::int4) n) n
  where w.webhook_id = any(${ids}::uuid[])`.execute(db)

/** How many notifications wait for a number of confirmations. */
const changed = async (id: string, confirmation: number) => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int4 as count from delivery
    where webhook_id = ${id} and due_block = block_number + ${confirmation}::int8 - 1`.execute(db)
  return rows[0]!.count
}

it('a block does not wait until all notifications wait for another number of confirmations', async () => {
  const webhook_id = await register()
  const other = await register()
  await note([webhook_id, other], 1_000, many)
  /** How many notifications are due before one of an earlier block. */
  const early = async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int4 as count from (
        select block_number, max(block_number) over (order by due_block
          range between unbounded preceding and 1 preceding) as latest
        from delivery where webhook_id = ${webhook_id} and due_block is not null) d
      where block_number < latest`.execute(db)
    return rows[0]!.count
  }
  // More confirmations, then fewer, then those that all have already. A block that is stored meanwhile notes what it has.
  let noted = many
  for (const [confirmation, block] of [
    [300, 2_001],
    [20, 2_002],
    [20, 2_003],
  ] as const) {
    const look = async () => {
      const count = await changed(webhook_id, confirmation)
      await note([webhook_id], block, 10)
      return { count, early: await early() }
    }
    const found = await whileLocked(
      (trx) => lockCursor(trx, network_id),
      () => call('UpdateWebhook', { webhook_id, confirmation }),
      look,
    )
    if (block < 2_003) expect(found.count).toEqual(someButNotAll)
    noted += 10
    expect(found.early).toBe(0)
    expect(await changed(webhook_id, confirmation)).toBe(noted)
    expect(await changed(other, 1)).toBe(many)
  }
})

it('two changes of the confirmation at once leave one number for all notifications', async () => {
  const webhook_id = await register()
  await sql`
    insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
      notification_type, data, block_number, due_block, create_time)
    select gen_random_uuid(), ${organization_id}::uuid, ${network_id}, ${webhook_id}::uuid,
      'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', n, n, now()
    from generate_series(1, ${many}::int4) n`.execute(db)
  const distances = async () => {
    const { rows } = await sql<{ distance: number }>`
      select distinct due_block - block_number + 1 as distance from delivery
      where webhook_id = ${webhook_id} and due_block is not null`.execute(db)
    return rows.map(({ distance }) => distance)
  }
  for (const pair of [
    [500, 900],
    [3, 700],
    [20, 10],
    [100, 5],
  ]) {
    await Promise.all(
      pair.map((confirmation) => call('UpdateWebhook', { webhook_id, confirmation })),
    )
    const { webhooks } = await call('ListWebhooks', { webhook_id })
    expect(pair).toContain(webhooks[0].confirmation)
    expect(await distances()).toEqual([webhooks[0].confirmation])
  }
})

it('what is noted behind the pages of fewer confirmations waits for the new number too', async () => {
  const webhook_id = await register()
  const confirmation = 20
  for (const [before, first, behind] of [
    [1_000_000, 1_000, 900],
    [300, 10_000, 9_990],
  ] as const) {
    await sql`update webhook set confirmation = ${before} where webhook_id = ${webhook_id}`.execute(
      db,
    )
    await sql`delete from delivery where webhook_id = ${webhook_id}`.execute(db)
    await note([webhook_id], first, many)
    // A backfill, or blocks that came instead of others, between two pages. And one that follows a pending transfer.
    const found = await whileLocked(
      (trx) => lockCursor(trx, network_id),
      () => call('UpdateWebhook', { webhook_id, confirmation }),
      async () => {
        const count = await changed(webhook_id, confirmation)
        await note([webhook_id], behind, 10)
        await sql`
          insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
            notification_type, data, block_number, due_block, create_time)
          select gen_random_uuid(), ${organization_id}::uuid, ${network_id}, ${webhook_id}::uuid,
            'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{"pending": 1}', ${behind}::int8, ${behind + 7}, now()`.execute(
          db,
        )
        return count
      },
    )
    expect(found).toEqual(someButNotAll)
    expect(await changed(webhook_id, confirmation)).toBe(many + 10)
    expect(await changed(webhook_id, 8)).toBe(1)
    const { rows } = await sql`
      select confirmation::int4, next_confirmation from webhook where webhook_id = ${webhook_id}`.execute(
      db,
    )
    expect(rows).toEqual([{ confirmation, next_confirmation: null }])
  }
})

it('a change continues from the beginning after two others, also if the last one has the same number', async () => {
  const webhook_id = await register()
  await sql`
    insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
      notification_type, data, block_number, due_block, create_time)
    select gen_random_uuid(), ${organization_id}::uuid, ${network_id}, ${webhook_id}::uuid,
      'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', n, n + 99, now()
    from generate_series(1, ${many}::int4) n`.execute(db)
  await sql`update webhook set confirmation = 100 where webhook_id = ${webhook_id}`.execute(db)
  // Each call waits before each of its pages.
  const steps: (() => void)[] = []
  const bulkTurns = {
    run: async <result>(_organization_id: string, act: () => Promise<result>) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      steps.push(resolve)
      await promise
      return await act()
    },
  }
  Object.assign(bench.installation, { bulkTurns })
  const next = async () => {
    await waitFor('a page', async () => steps.length > 0)
    return steps.pop()!
  }
  const begin = async (confirmation: number, pages: number) => {
    const done = call('UpdateWebhook', { webhook_id, confirmation })
    for (let page = 0; page < pages; page++) (await next())()
    return { done, go: await next() }
  }
  try {
    const [first, second, third] = [await begin(5, 1), await begin(20, 2), await begin(5, 1)]
    // The first one to its end, then the others.
    first.go()
    let isDone = false
    void first.done.finally(() => {
      isDone = true
    })
    while (!isDone) {
      await waitFor('a page, or the end', async () => isDone || steps.length > 0)
      steps.pop()?.()
    }
    await first.done
    second.go()
    third.go()
    await Promise.all([second.done, third.done])
  } finally {
    Object.assign(bench.installation, { bulkTurns: undefined })
  }
  expect(await changed(webhook_id, 5)).toBe(many)
})

it('what was not held back yet has its place among the others, also after a change of the webhook', async () => {
  for (const change of [
    (webhook_id: string) =>
      call('UpdateWebhook', { webhook_id, events: ['WEBHOOK_EVENT_TRANSFER'] }),
    (webhook_id: string) => call('UpdateWebhook', { webhook_id, confirmation: 7 }),
    (webhook_id: string) => call('RotateWebhookSigningSecret', { webhook_id }),
  ]) {
    const webhook_id = await register()
    // Disabled by a courier that ended before it held anything back.
    await sql`
      update webhook set webhook_state = 'WEBHOOK_STATE_DISABLED', disable_time = now,
        update_time = now
      from (select date_trunc('second', now()) - interval '1 second' as now) t
      where webhook_id = ${webhook_id}`.execute(db)
    await change(webhook_id)
    await call('EnableWebhook', { webhook_id })
    expect(await counts(webhook_id)).toEqual({ WEBHOOK_STATUS_PENDING: [many, many] })
  }
})

it('what a change that broke off left due of a disabled webhook is held back after a minute', async () => {
  const webhook_id = await register()
  await sql`
    update webhook set webhook_state = 'WEBHOOK_STATE_DISABLED', update_time = now()
    where webhook_id = ${webhook_id}`.execute(db)
  const hold = (minutes: number) => holdDisabled(db, webhook_id, Date.now() + minutes * 60_000)
  await hold(0)
  expect(await counts(webhook_id)).toEqual({ WEBHOOK_STATUS_PENDING: [many, 0] })
  for (let page = 0; page < 6; page++) await hold(2)
  expect(await counts(webhook_id)).toEqual({ WEBHOOK_STATUS_ON_HOLD: [many, 0] })
  await call('EnableWebhook', { webhook_id })
  await sql`update delivery_queue set next_attempt_time = now() + interval '1 hour'
    where webhook_id = ${webhook_id}`.execute(db)
  await hold(2)
  expect(await counts(webhook_id)).toEqual({ WEBHOOK_STATUS_PENDING: [many, 0] })
})
