import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { beforeAll, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import type { ChainBlock } from '../../chains/chain.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { Db } from '../../storage/pg/database.ts'
import { lockCursor, setCursor } from '../../storage/tracking/blocks.ts'
import {
  type ClaimedDelivery,
  claimDeliveries,
  releaseClaims,
} from '../../storage/webhooks/delivery-claims.ts'
import { type AttemptRecord, recordAttempts } from '../../storage/webhooks/delivery-records.ts'
import { removeOldHistory } from '../../storage/webhooks/delivery-retention.ts'
import { listDueWaiting, lockDueWebhooks } from '../../storage/webhooks/due-notifications.ts'
import {
  deleteWaiting,
  insertWaiting,
  queueNotifications,
  releaseWaiting,
} from '../../storage/webhooks/notifications.ts'
import {
  deleteWaitingAbove,
  detachDeliveries,
  listSentAbove,
  lockRetractedWebhooks,
} from '../../storage/webhooks/retractions.ts'
import { followBlocks, unfollowAbove } from '../sender/follow.ts'

const { db, pool } = await freshDatabase()
const bench = await createWalletBench(db, 'c')
const { network_id } = bench
const { organization_id, call } = await bench.createCaller()
const notification_type = 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED' as const
const webhook_endpoint = 'https://receiver.invalid'
let wallet_id: string

beforeAll(async () => {
  wallet_id = (await call('RegisterWallet', { name: 'w', confirmation: 1 })).wallet_id
  const cursor = { network_id, block_number: 100, block_hash: randomBytes(32) }
  await setCursor(db, { ...cursor, update_time: new Date() })
})

const register = async (fields: object = {}): Promise<string> =>
  (await call('RegisterWebhook', { webhook_endpoint, confirmation: 1, ...fields })).webhook_id

const waitingRow = (webhook_id: string, block_number: number, number: string) => ({
  webhook_history_id: number,
  organization_id,
  network_id,
  webhook_id,
  notification_type,
  data: { block_number },
  transaction_hash: randomBytes(32),
  block_number,
  due_block: block_number,
  create_time: new Date(),
})

const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)]!
const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)

it('what courier, tracker, sender, retention and users do at once never waits in a circle', async () => {
  const hooks = await Promise.all(Array.from({ length: 5 }, () => register()))
  let block = 100

  const notify = async (trx: Db, count: number) => {
    const notifications = Array.from({ length: count }, () => ({
      organization_id,
      network_id,
      webhook_id: pick(hooks),
      notification_type,
      data: {},
    }))
    await queueNotifications(trx, notifications, new Date())
  }
  const oneTracker = (trx: Db) => lockCursor(trx, network_id)
  // As the tracker does: what a managed transaction makes known, then what waits for this head.
  const storeBlock = async () => {
    await db.transaction().execute(async (trx) => {
      await oneTracker(trx)
      const head = ++block
      await insertWaiting(
        trx,
        shuffled(hooks).map((webhook_id) => waitingRow(webhook_id, head, crypto.randomUUID())),
      )
      await lockDueWebhooks(trx, { network_id, head }, [{ organization_id, wallet_id }])
      await notify(trx, 3)
      const { waiting: due } = await listDueWaiting(trx, { network_id, head: head - 3, limit: 500 })
      const notified = await releaseWaiting(
        trx,
        shuffled(due).map((row) => ({ ...row, data: {} })),
        new Date(),
      )
      await deleteWaiting(
        trx,
        due.map((row) => row.webhook_history_id).filter((id) => !notified.has(id)),
      )
    })
  }
  const rollBack = async () => {
    await db.transaction().execute(async (trx) => {
      await oneTracker(trx)
      const removed = { network_id, above: block - 2, organization_ids: [organization_id] }
      await deleteWaitingAbove(trx, removed)
      await lockRetractedWebhooks(trx, removed, [])
      const { rows: sent } = await listSentAbove(trx, removed, { rows: 1_000, bytes: 8_000_000 })
      await detachDeliveries(
        trx,
        sent.map(({ webhook_history_id }) => webhook_history_id),
      )
      await notify(trx, 5)
    })
  }
  const claim = async (count: number) => {
    const now = new Date()
    const wanted = shuffled(hooks).map((webhook_id) => ({ organization_id, webhook_id, count }))
    // Over at once: couriers that were asleep for long have the same rows.
    return shuffled(await claimDeliveries(db, wanted, { now, expire: now }))
  }
  const recordOf = (row: ClaimedDelivery): AttemptRecord => {
    const is_delivered = Math.random() < 0.6
    const is_gone = Math.random() < 0.02
    return {
      ...row,
      is_delivered,
      attempt_time: new Date(),
      duration_ms: 1,
      status_code: 200,
      error: is_delivered ? null : 'failed',
      response_body: null,
      request_headers: null,
      response_headers: null,
      next_attempt_time: is_delivered || Math.random() < 0.3 ? null : new Date(),
      is_gone,
      was_failing: false,
    }
  }
  const deliver = async () => {
    const claims = await claim(8)
    // Only successes, now and then: the one statement that locks no webhook.
    const isWell = Math.random() < 0.5
    const records = claims.map((row) =>
      isWell ? { ...recordOf(row), is_delivered: true, error: null } : recordOf(row),
    )
    await Promise.all([
      recordAttempts(db, records, new Date()),
      // Asleep for long, then awake again: it records the same.
      recordAttempts(db, shuffled(records).slice(0, 12), new Date()),
      releaseClaims(db, shuffled(claims).slice(0, 12)),
    ]).catch((error: { code?: string }) => {
      // Both numbered an attempt alike; the recorder repeats it.
      if (error.code !== '23505') throw error
    })
  }
  const use = async () => {
    const webhook_id = pick(hooks)
    const acts: (() => Promise<unknown>)[] = [
      () => call('EnableWebhook', { webhook_id }),
      () => call('EnableWebhook', { webhook_id }),
      () => call('DisableWebhook', { webhook_id }),
      () => call('UpdateWebhook', { webhook_id, confirmation: Math.floor(Math.random() * 5) }),
      () =>
        call('UpdateWebhook', {
          webhook_id,
          webhook_endpoint: `https://${Math.random()}.invalid/`,
        }),
      () => call('RotateWebhookSigningSecret', { webhook_id }),
      () => call('RetryWebhookHistory', { webhook_id }),
      () => call('SendTestWebhook', { webhook_id }),
      () => call('RegisterWebhookHeader', { webhook_id, header_key: 'x', header_value: 'y' }),
      async () => {
        const { webhook_histories } = await call('ListWebhookHistories', { webhook_id })
        const { webhook_history_id } = pick<{ webhook_history_id: string }>(webhook_histories) ?? {}
        if (webhook_history_id) await call('RetryWebhookHistory', { webhook_history_id })
      },
      async () => {
        await call('RemoveWebhook', { webhook_id })
        hooks.splice(hooks.indexOf(webhook_id), 1, await register())
      },
    ]
    await pick(acts)().catch((error: unknown) => {
      // Removed or disabled by another.
      if (!(error instanceof OperationError)) throw error
    })
  }
  const retain = async () => {
    const after = undefined
    await removeOldHistory(
      db,
      { organization_id, network_id },
      { before: new Date(), after, limit: 5 },
    )
  }

  const loop = async (count: number, act: () => Promise<unknown>) => {
    for (let turn = 0; turn < count; turn++) await act()
  }
  await db.transaction().execute((trx) => notify(trx, 500))
  await Promise.all([
    loop(60, storeBlock),
    loop(30, rollBack),
    loop(60, deliver),
    loop(60, deliver),
    loop(60, deliver),
    loop(120, use),
    loop(120, use),
    loop(60, retain),
  ])

  const { rows } = await pool.query(
    `select (select count(*)::int4 from delivery_queue q where not exists (
         select 1 from delivery d where d.webhook_history_id = q.webhook_history_id)) as orphans,
       (select count(*)::int4 from delivery d where sequence is not null and not exists (
         select 1 from delivery_queue q where q.webhook_history_id = d.webhook_history_id)
         and not exists (select 1 from delivery_attempt a
           where a.webhook_id = d.webhook_id and a.sequence = d.sequence)) as lost`,
  )
  expect(rows).toEqual([{ orphans: 0, lost: 0 }])
}, 120_000)

/** Waits until a session of this database waits for a lock, or the work is done. */
const isHeldUp = async (work: Promise<unknown>): Promise<void> => {
  let isDone = false
  void work.then(() => {
    isDone = true
  })
  await waitFor('a transaction waits for a lock', async () => {
    const { rows } = await pool.query(
      `select 1 from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return isDone || rows.length > 0
  })
}

it.each([
  [
    'stores blocks',
    'TRANSACTION_STATE_SENT' as const,
    (trx: Db, from: Buffer) => {
      const sent = [{ from, nonce: 7, failed: false, hash: () => Buffer.alloc(32, 7) }]
      const block = { number: 50, hash: randomBytes(32), sent } as unknown as ChainBlock
      return followBlocks(trx, { network_id, now: new Date() }, [block])
    },
  ],
  [
    'takes blocks back',
    'TRANSACTION_STATE_MINED' as const,
    (trx: Db) =>
      unfollowAbove(
        trx,
        { network_id, now: new Date() },
        { network_id, above: 40, organization_ids: [organization_id] },
      ),
  ],
])(
  '%s locks all webhooks at once before the first notification',
  async (_what, state, act) => {
    const [first, second] = [await register(), await register()] as const
    expect(first < second).toBe(true)
    await sql`delete from webhook where webhook_id <> all(${[first, second]}::uuid[])`.execute(db)
    await sql`delete from managed_transaction`.execute(db)
    // Only the second wants the transaction; the first waits for a transfer of the same blocks.
    const { wallet_id: other } = await call('RegisterWallet', { name: 'other' })
    await sql`update webhook set wallet_id = ${other} where webhook_id = ${first}`.execute(db)
    await insertWaiting(db, [waitingRow(first, 50, crypto.randomUUID())])
    const from = randomBytes(20)
    await db
      .insertInto('managed_transaction')
      .values({
        organization_id,
        transaction_id: crypto.randomUUID(),
        network_id,
        wallet_id,
        transaction_state: state,
        from,
        to: randomBytes(20),
        value: 1n,
        gas: 21_000n,
        gas_price: 1n,
        data: Buffer.alloc(0),
        nonce: 7,
        eip155_chain_id: 1n,
        request_hash: randomBytes(32),
        transaction_hash: Buffer.alloc(32, 7),
        block_number: state === 'TRANSACTION_STATE_MINED' ? 50 : null,
        create_time: new Date(),
        update_time: new Date(),
        broadcast_count: 1,
        is_unsure: false,
      })
      .execute()

    const client = await pool.connect()
    try {
      await client.query('begin')
      const lock = 'select 1 from webhook where webhook_id = $1 for no key update'
      await client.query(lock, [first])
      let release = () => {}
      const open = new Promise<void>((resolve) => {
        release = resolve
      })
      const notified = Promise.withResolvers<void>()
      const notifying = db.transaction().execute(async (trx) => {
        await act(trx, from)
        notified.resolve()
        await open
      })
      await isHeldUp(notified.promise)
      // Not its before it has the first one too.
      expect((await client.query(`${lock} nowait`, [second])).rowCount).toBe(1)
      await client.query('commit')
      release()
      await notifying
    } finally {
      client.release()
    }
    const { webhook_histories } = await call('ListWebhookHistories', { webhook_id: second })
    expect(webhook_histories).not.toEqual([])
  },
  60_000,
)
