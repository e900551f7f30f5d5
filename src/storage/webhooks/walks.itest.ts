import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import { insertOrganization } from '../access/organizations.ts'
import type { Database, Db } from '../pg/database.ts'
import { ensureNetwork } from '../tracking/networks.ts'
import { insertWallet } from '../wallets/wallets.ts'
import { advanceEvents, listEventWebhooks } from './notification-events.ts'
import { findWebhooks } from './notifications.ts'
import { endQueue, holdQueue, releaseQueue, restartQueue } from './queue-pages.ts'
import { countNotifiedAbove } from './retractions.ts'
import { removeEvents } from './sinks.ts'
import { listStateWebhooks } from './state-events.ts'
import { listWebhooks } from './webhooks.ts'

const create_time = new Date('2026-01-01T00:00:00Z')
const now = new Date()
// The webhooks of `others` come first in the order of ids.
const [others, own] = [randomUUIDv7(), randomUUIDv7()]
const wallet_id = randomUUIDv7()
const queued = randomUUIDv7()
const sinks = { sent: randomUUIDv7(), waiting: randomUUIDv7() }

/** Two tenants, of which one has nearly all webhooks, and one webhook, queue and sink that have most of what is stored. */
const fill = async ({ db, pool }: Database) => {
  // The statistics are those of the end.
  for (const table of ['webhook', 'delivery', 'delivery_queue'])
    await pool.query(`alter table ${table} set (autovacuum_enabled = false)`)
  const network_id = await ensureNetwork(db, { chain: 'c', network: 'n', create_time })
  for (const organization_id of [others, own])
    await insertOrganization(db, {
      ...{ organization_id, name: 'o', domain: organization_id, create_time },
    })
  await insertWallet(db, {
    ...{ wallet_id, organization_id: own, network_id, name: 'w', confirmation: 1, create_time },
  })
  const webhooks = (organization: string, count: number, first: string, wallet: string | null) =>
    pool.query(
      `insert into webhook (webhook_id, organization_id, network_id, wallet_id, webhook_endpoint,
         confirmation, webhook_state, secret_sealed, next_sequence, create_time, update_time)
       select ($1 || right(gen_random_uuid()::text, 35))::uuid, $2, $3, $4, '', 1,
         'WEBHOOK_STATE_ENABLED', '', 1, $5, $5
       from generate_series(1, $6)`,
      [first, organization, network_id, wallet, create_time, count],
    )
  await webhooks(others, 20_000, '0', null)
  await webhooks(own, 1_000, 'f', null)
  await webhooks(own, 1_000, 'f', wallet_id)
  for (const webhook_id of [queued, ...Object.values(sinks)])
    await pool.query(
      `insert into webhook (webhook_id, organization_id, network_id, webhook_endpoint, confirmation,
         webhook_state, secret_sealed, next_sequence, create_time, update_time, sink)
       values ($1, $2, $3, '', 10, 'WEBHOOK_STATE_ENABLED', '', 1, $4, $4, $5)`,
      [webhook_id, others, network_id, create_time, webhook_id === queued ? null : 'nats'],
    )
  await pool.query(
    `insert into sink (webhook_id, organization_id, network_id, sink_type, settings, position,
       epoch, failure_count, next_attempt_time, create_time)
     select unnest($1::uuid[]), $2, $3, 'SINK_TYPE_NATS', '{}', 0, 0, 0, now(), now()`,
    [Object.values(sinks), others, network_id],
  )
  // What a page looks for is at the end of the table, and most of the table is of the same webhook.
  const deliveries = (
    webhook_id: string,
    count: number,
    sequence: string,
    due: string,
    organization_id = others,
  ) =>
    pool.query(
      `insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
         notification_type, data, sequence, block_number, due_block, create_time)
       select gen_random_uuid(), $1, $2, $3, 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}',
         ${sequence}, n, ${due}, $4
       from generate_series(1, $5) n order by random()`,
      [organization_id, network_id, webhook_id, create_time, count],
    )
  await deliveries(sinks.waiting, 30_000, 'null', 'n + 9')
  await deliveries(sinks.sent, 20_000, 'n', 'null')
  await deliveries(queued, 2_000, 'null', 'n + 9')
  await deliveries(randomUUIDv7(), 10, 'n', 'null', own)
  const queue = (status: string, count: number, from: number, due: Date | null) =>
    pool.query(
      `insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence,
         webhook_status, next_attempt_time, retry_step)
       select gen_random_uuid(), $1, $2, $3 + n, 'WEBHOOK_STATUS_' || $4::text, $5, 0
       from generate_series(1, $6) n order by random()`,
      [others, queued, from, status, due, count],
    )
  await queue('ON_HOLD', 20_000, 0, null)
  await queue('PENDING', 20_000, 50_000, create_time)
  await queue('PENDING', 20_000, 80_000, new Date(now.getTime() + 3_600_000))
  // Few of the queue, of many webhooks.
  await pool.query(
    `insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence,
       webhook_status, next_attempt_time, retry_step)
     select gen_random_uuid(), $1, webhook_id, 1, 'WEBHOOK_STATUS_FAILED', null, 0
     from webhook where webhook_id <> $2 limit 5000`,
    [others, queued],
  )
  await pool.query('analyze webhook, delivery, delivery_queue')
  return network_id
}

const engines = ['embedded', 'system'] as const

// Versions of the server plan them differently.
describe.each(engines)('on the %s server', (engine) => {
  let planned: Database
  let network_id: number

  beforeAll(async () => {
    if (!hasEngine(engine)) return
    planned = await freshDatabase(engine)
    network_id = await fill(planned)
  })

  /** How many rows some work reads. The server includes what a session has not reported yet. */
  const countRead = async (work: (trx: Db) => Promise<unknown>): Promise<number> => {
    const trx = await planned.db.startTransaction().execute()
    try {
      const soFar = async () => {
        const { rows } = await sql<{ read: string }>`
          select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::text as read
          from pg_stat_xact_user_tables
          where relname in ('webhook', 'delivery', 'delivery_queue')`.execute(trx)
        return Number(rows[0]?.read)
      }
      // The default of servers, which favours the table.
      await sql`set local random_page_cost = 4`.execute(trx)
      const before = await soFar()
      await work(trx)
      return (await soFar()) - before
    } finally {
      await trx.rollback().execute()
    }
  }

  const ofWebhooks = () => ({ organization_id: own, network_id })
  const event = () => ({ ...ofWebhooks(), wallet_id })
  /** Webhooks of wallets, and of all wallets, have ids on both sides of it. */
  const middle = 'f8000000-0000-0000-0000-000000000000'
  const addEvent = async (
    trx: Db,
    event: { wallet_ids: readonly string[]; after_webhook_id?: string },
  ) => {
    const { wallet_ids, after_webhook_id = null } = event
    await sql`
      insert into notification_event (network_id, organization_id, event_number, event_kind, block_number, wallet_ids,
        event_key, notification_type, data, transaction_hash, after_webhook_id, create_time)
      values (${network_id}, ${own}, 1, 'TRANSFERS', 1, ${wallet_ids as string[]}::uuid[], '{}',
        'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', '', ${after_webhook_id}, ${now})`.execute(
      trx,
    )
  }
  const stateEvent = (after_webhook_id: string | null) => ({
    ...{ ...event(), event_number: 1, transaction_id: 't', transaction_hash: null, data: {} },
    ...{ create_time: now, after_webhook_id },
  })
  const removedEvents = async (trx: Db, webhook_id: string) => {
    await sql`update sink set remove_time = now() where webhook_id = ${webhook_id}`.execute(trx)
    expect(await removeEvents(trx, 100)).toBe(true)
  }
  const cases: [what: string, most: number, work: (trx: Db) => Promise<unknown>][] = [
    [
      'the webhooks of a transfer',
      2_500,
      async (trx) => {
        await sql`set local plan_cache_mode = force_generic_plan`.execute(trx)
        await findWebhooks(trx, network_id, [event()], 'WEBHOOK_EVENT_TRANSFER', 300)
      },
    ],
    [
      'the first webhooks of an event',
      700,
      async (trx) => {
        await addEvent(trx, { wallet_ids: [wallet_id] })
        expect(await listEventWebhooks(trx, ofWebhooks(), [1], 300)).toHaveLength(300)
      },
    ],
    [
      'the next webhooks of an event of a wallet',
      150,
      async (trx) => {
        await addEvent(trx, { wallet_ids: [wallet_id], after_webhook_id: middle })
        expect(await listEventWebhooks(trx, ofWebhooks(), [1], 50)).toHaveLength(50)
      },
    ],
    [
      'the webhooks of an event of thousands of wallets',
      150,
      async (trx) => {
        const wallet_ids = [wallet_id, ...Array.from({ length: 2_000 }, () => randomUUIDv7())]
        await addEvent(trx, { wallet_ids, after_webhook_id: middle })
        expect(await listEventWebhooks(trx, ofWebhooks(), [1], 50)).toHaveLength(50)
      },
    ],
    [
      'the first webhooks of a state',
      700,
      async (trx) => {
        expect(await listStateWebhooks(trx, stateEvent(null), 300)).toHaveLength(300)
      },
    ],
    [
      'the next webhooks of a state',
      150,
      async (trx) => {
        expect(await listStateWebhooks(trx, stateEvent(middle), 50)).toHaveLength(50)
      },
    ],
    [
      'a page of webhooks',
      2_500,
      async (trx) => expect(await listWebhooks(trx, ofWebhooks(), { limit: 10 })).toHaveLength(10),
    ],
    [
      'a later page of the webhooks of a wallet',
      2_500,
      async (trx) => {
        const after = `f0000000-0000-0000-0000-000000000000`
        const list = await listWebhooks(trx, ofWebhooks(), { wallet_id, after, limit: 10 })
        expect(list).toHaveLength(10)
      },
    ],
    [
      'notifications above a block of an organization that has none',
      500,
      async (trx) => {
        const above = { network_id, above: 10_000 }
        const counts = [{ organization_id: others, count: 257 }]
        expect(await countNotifiedAbove(trx, above, 257)).toEqual(counts)
      },
    ],
    ['holding a queue', 3_000, (trx) => holdQueue(trx, queued)],
    ['restarting a queue', 3_000, (trx) => restartQueue(trx, queued, now)],
    ['releasing a queue', 3_000, (trx) => releaseQueue(trx, queued, now)],
    [
      'ending a queue',
      8_000,
      async (trx) => {
        // Most of this small table waits: with 4 it is cheaper to read it whole.
        await sql`set local random_page_cost = 1.1`.execute(trx)
        await endQueue(trx, queued)
      },
    ],
    ['the events of a removed sink', 300, (trx) => removedEvents(trx, sinks.sent)],
  ]

  it.skipIf(!hasEngine(engine)).each(cases)(
    '%s reads no more than %i rows',
    async (_, most, work) => {
      expect(await countRead(work)).toBeLessThanOrEqual(most)
    },
  )

  it.skipIf(!hasEngine(engine))('pages of an event have each of its webhooks once', async () => {
    const { rows } = await planned.pool.query(
      `select webhook_id from webhook where organization_id = $1 order by webhook_id`,
      [own],
    )
    const all: string[] = rows.map(({ webhook_id }) => webhook_id)
    await planned.db.transaction().execute(async (trx) => {
      await addEvent(trx, { wallet_ids: [wallet_id, randomUUIDv7()] })
      const found: string[] = []
      for (;;) {
        const page = await listEventWebhooks(trx, ofWebhooks(), [1], 300)
        if (page.length === 0) break
        found.push(...page.map(({ webhook_id }) => webhook_id))
        const partly = { event_number: 1, after_webhook_id: found.at(-1)! }
        await advanceEvents(trx, ofWebhooks(), { done: [], partly })
      }
      expect(found).toEqual(all)
      await advanceEvents(trx, ofWebhooks(), { done: [1] })
    })
  })
})
