import { createHash, randomBytes, randomUUIDv7 } from 'node:crypto'
import { type CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import type { Db } from '../pg/database.ts'
import { prepared } from '../pg/prepared.ts'
import { type DeliveryPosition, listDeliveries, listScan } from './deliveries.ts'
import { claimDeliveries, listQueuedWebhooks } from './delivery-claims.ts'
import { listOldHistories, removeOldHistory } from './delivery-retention.ts'
import { streamIdOf } from './streams.ts'
import { insertWebhook } from './webhooks.ts'

const { db, pool } = await freshDatabase()
const { network_id, createCaller } = await createWalletBench(db, 'c')
const { organization_id } = await createCaller()
const scope = { organization_id, network_id }
const streaming = { organization_id: (await createCaller()).organization_id, network_id }
const streamingHook = randomUUIDv7()
const now = new Date()
const hooks = [randomUUIDv7(), randomUUIDv7()] as const

beforeAll(async () => {
  for (const webhook_id of hooks)
    await insertWebhook(db, {
      webhook_id,
      ...scope,
      wallet_id: null,
      webhook_endpoint: 'https://receiver.invalid',
      confirmation: 1,
      secret_sealed: randomBytes(8),
      create_time: now,
    })
  await sql`
    insert into organization (organization_id, name, domain, create_time, update_time)
    select gen_random_uuid(), 'Other', 'other-' || i, ${now}, ${now}
    from generate_series(1, 5000) i`.execute(db)
  await sql`
    insert into sink (webhook_id, organization_id, network_id, sink_type, settings, position, epoch,
      failure_count, next_attempt_time, create_time)
    select gen_random_uuid(), organization_id, 1, 'SINK_TYPE_NATS', '{}', 0, 0, 0, ${now}, ${now}
    from organization`.execute(db)
  // An organization with two notifications of a webhook behind 12,000 of its stream, and one before them.
  await sql`
    insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
      notification_type, data, sequence, create_time)
    select gen_random_uuid(), ${streaming.organization_id}::uuid, ${network_id}::int2,
      case when i in (0, 12001, 12002) then ${streamingHook}::uuid
        else ${streamIdOf(streaming)}::uuid end,
      'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', i,
      ${now}::timestamptz - i * interval '1 second'
    from generate_series(0, 12002) i`.execute(db)
  // A long history, half of it of each webhook, and a queue of 5,000 for the first.
  await sql`
    with notified as (
      insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
        notification_type, data, sequence, transaction_hash, create_time)
      select gen_random_uuid(), ${organization_id}::uuid, ${network_id}::int2,
        case i % 2 when 0 then ${hooks[0]}::uuid else ${hooks[1]}::uuid end,
        'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', i, sha256((i / 50)::text::bytea),
        ${now}::timestamptz - i * interval '1 second'
      from generate_series(1, 50000) i
      returning *),
    tried as (
      insert into delivery_attempt (webhook_id, sequence, attempt, organization_id, attempt_time,
        duration_ms)
      select webhook_id, sequence, 1, organization_id, create_time, 1 from notified)
    insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence,
      webhook_status, next_attempt_time, retry_step)
    select webhook_history_id, organization_id, webhook_id, sequence, 'WEBHOOK_STATUS_PENDING',
      create_time, 0
    from notified where webhook_id = ${hooks[0]} and sequence <= 10000`.execute(db)
})

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** How much the statements of some work read, and of which tables they read everything. */
const readBy = async (work: (watched: Db) => Promise<unknown>) => {
  const statements: CompiledQuery[] = []
  const watched: Db = new Kysely({
    dialect: new PostgresDialect({ pool }),
    log: ({ query }) =>
      void (
        /^\s*(select|with|delete)/.test(query.sql.replace(prepared, '')) && statements.push(query)
      ),
  })
  await work(watched)
  const nodes: Plan[] = []
  for (const { sql: text, parameters } of statements) {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rows } = await client.query(`explain (analyze, format json) ${text}`, [...parameters])
      nodes.push(...nodesOf(rows[0]['QUERY PLAN'][0].Plan))
    } finally {
      await client.query('rollback')
      client.release()
    }
  }
  const tables = nodes.filter((node) => node['Relation Name'])
  expect(tables.length).toBeGreaterThan(0)
  return {
    whole: tables
      .filter((node) => node['Node Type'] === 'Seq Scan')
      .map((node) => node['Relation Name']),
    rows: Math.max(
      ...tables.map(
        (node) =>
          (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      ),
    ),
  }
}

const page = { limit: 100, now }
const deep = {
  create_time: new Date(now.getTime() - 40_000_000),
  webhook_history_id: randomUUIDv7(),
}
const transaction_hash = createHash('sha256').update('700').digest()
const before = new Date(now.getTime() - 49_000_000)

describe.each(['nothing is known of the tables', 'they are analyzed'])('when %s', (when) => {
  beforeAll(async () => {
    if (when === 'they are analyzed') await sql`analyze`.execute(db)
  })

  it.each<[what: string, most: number, work: (watched: Db) => Promise<unknown>]>([
    [
      'the first page of a webhook',
      101,
      (at) => listDeliveries(at, scope, { ...page, webhook_id: hooks[1] }),
    ],
    [
      'a deep page of a webhook',
      101,
      (at) => listDeliveries(at, scope, { ...page, webhook_id: hooks[1], after: deep }),
    ],
    ['the first page of all', 101, (at) => listDeliveries(at, scope, page)],
    ['a deep page of all', 101, (at) => listDeliveries(at, scope, { ...page, after: deep })],
    [
      'those of a transaction',
      50,
      (at) => listDeliveries(at, scope, { ...page, transaction_hash }),
    ],
    [
      'those of a transaction and a webhook',
      50,
      (at) => listDeliveries(at, scope, { ...page, transaction_hash, webhook_id: hooks[1] }),
    ],
    ['a look at the queue', 2, (at) => listQueuedWebhooks(at)],
    [
      'a claim',
      64,
      (at) =>
        claimDeliveries(at, [{ organization_id, webhook_id: hooks[0], count: 64 }], {
          now,
          expire: now,
        }),
    ],
    ['a look for old histories', 2, (at) => listOldHistories(at, before)],
    [
      'removing old histories',
      50,
      (at) => removeOldHistory(at, scope, { before, after: undefined, limit: 50 }),
    ],
  ])('%s reads what it gives, and no table whole', async (_what, most, work) => {
    const { whole, rows } = await readBy(work)
    expect(whole).toEqual([])
    expect(rows).toBeLessThanOrEqual(most)
  })
  it('a page behind many notifications of a stream is short, and none is missed or repeated', async () => {
    const { whole, rows } = await readBy((at) => listDeliveries(at, streaming, page))
    expect(whole).toEqual([])
    expect(rows).toBeLessThanOrEqual(listScan)
    const pages: number[][] = []
    let after: DeliveryPosition | undefined
    do {
      const { rows, next } = await listDeliveries(db, streaming, { ...page, after })
      pages.push(rows.map(({ sequence }) => Number(sequence)))
      after = next
    } while (after)
    expect(pages).toEqual([[0], [], [12_001, 12_002]])
  })

  it('a page that large bodies end before the look does continues with the next of them', async () => {
    const large = { organization_id: (await createCaller()).organization_id, network_id }
    const hook = randomUUIDv7()
    // Three of 600 KB, 6,000 of the stream, and one before them.
    await sql`
      insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
        notification_type, data, sequence, create_time)
      select gen_random_uuid(), ${large.organization_id}::uuid, ${network_id}::int2,
        case when i in (0, 6001, 6002, 6003) then ${hook}::uuid else ${streamIdOf(large)}::uuid end,
        'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED',
        case when i > 6000 then to_jsonb(${randomBytes(450_000).toString('base64')}::text) else '{}' end, i,
        ${now}::timestamptz + i * interval '1 second'
      from generate_series(0, 6003) i`.execute(db)
    const pages: number[][] = []
    let after: DeliveryPosition | undefined
    do {
      const { rows, next } = await listDeliveries(db, large, { ...page, after })
      pages.push(rows.map(({ sequence }) => Number(sequence)))
      after = next
    } while (after)
    expect(pages).toEqual([[6_003, 6_002], [6_001], [0]])
    // The plans of the other cases are those of the rows above.
    await sql`delete from delivery where organization_id = ${large.organization_id}`.execute(db)
  })

  it('nothing of a stream is looked at where it is asked for', async () => {
    const webhook_id = streamIdOf(streaming)
    expect(await listDeliveries(db, streaming, { ...page, webhook_id })).toEqual({
      rows: [],
      next: undefined,
    })
    const { rows } = await readBy((at) => listDeliveries(at, streaming, { ...page, webhook_id }))
    expect(rows).toBeLessThanOrEqual(1)
  })
})
