import { randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'
import { recordRepairs } from '../../storage/balances/rounds.ts'
import { acquireLease } from '../../storage/tracking/leases.ts'
import {
  openEvent,
  openOrganizationEvent,
  resolveEvent,
} from '../../storage/tracking/operational-events.ts'
import { listPendingAnnouncements } from '../../storage/webhooks/announcements.ts'
import { recordAttempts } from '../../storage/webhooks/delivery-records.ts'
import { announcePage, lookForIncidents } from './announcer.ts'

const { db, pool } = await freshDatabase()
const bench = await createWalletBench(db, 'c')
const { network_id } = bench
const [one, two] = [await bench.createCaller(), await bench.createCaller()]
const admin = await bench.createCaller({ role: 'ROLE_ADMIN' })
const lease = { name: 'announcer', epoch: 0 }
lease.epoch = (await acquireLease(db, {
  name: 'announcer',
  holder: randomUUID(),
  ttl_ms: 3_600_000,
}))!.epoch

const register = async (caller: Caller, events: string[]): Promise<string> =>
  (
    await caller.call('RegisterWebhook', {
      ...{ webhook_endpoint: 'https://receiver.invalid/hook', confirmation: 1 },
      events: events.map((event) => `WEBHOOK_EVENT_${event}`),
    })
  ).webhook_id
const mine = await register(one, ['OPERATIONAL'])
const others = await register(two, ['TRANSFER', 'OPERATIONAL'])
const quiet = await register(two, ['TRANSFER', 'TRANSACTION_STATE'])
const operator = await register(admin, ['INSTALLATION'])

const announce = async (): Promise<void> => {
  for (;;) {
    const pending = await listPendingAnnouncements(db, 10)
    if (pending.length === 0) return
    for (const event of pending) await announcePage(db, lease, event, new Date())
  }
}

/** The events that a webhook was notified of; its sequence must have no gap. */
const notified = async (webhook_id: string) => {
  const { rows } = await pool.query(
    'select sequence::int4, data, notification_type from delivery where webhook_id = $1 order by sequence',
    [webhook_id],
  )
  expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, at) => at + 1))
  return rows.map(({ data, notification_type }) => {
    expect(notification_type).toBe('NOTIFICATION_TYPE_OPERATIONAL_EVENT')
    const { event, subject, organization_id } = data.operational_event
    return { event, subject, organization_id }
  })
}
const clear = async () => {
  await pool.query('truncate delivery, delivery_queue, operational_event, operational_announcement')
  await pool.query('update webhook set next_sequence = 1')
}

const gap = { kind: 'gap', chain: 'c', network: 'mainnet', subject: '7' } as const

test('an incident of a network is announced once when it begins and once when it ends', async () => {
  await openEvent(db, { ...gap, detail: 'pruned', now: new Date() })
  await announce()
  await openEvent(db, { ...gap, detail: 'still pruned', now: new Date() })
  await announce()
  await resolveEvent(db, { ...gap, now: new Date() })
  await announce()
  const expected = ['gap_opened', 'gap_closed'].map((event) => ({
    ...{ event, subject: '7', organization_id: null },
  }))
  for (const webhook_id of [mine, others, operator])
    expect(await notified(webhook_id)).toEqual(expected)
  expect(await notified(quiet)).toEqual([])
  await clear()
})

test('nodes are announced to the installation only, and other networks not to organizations', async () => {
  const now = new Date()
  const lost = { kind: 'node_lost', chain: 'c', network: 'mainnet', subject: 'n1' } as const
  await openEvent(db, { ...lost, detail: 'The node is unreachable.', now })
  await openEvent(db, { ...gap, chain: 't', detail: '', now })
  await announce()
  expect(await notified(mine)).toEqual([])
  expect((await notified(operator)).map(({ event }) => event).toSorted()).toEqual([
    'gap_opened',
    'node_lost',
  ])
  await clear()
})

test('a webhook that the service disables is announced to the organization and not to itself', async () => {
  const dead = await register(one, ['TRANSFER', 'OPERATIONAL'])
  const { webhook_history_id } = await one.call('SendTestWebhook', { webhook_id: dead })
  const attempt = {
    ...{ webhook_history_id, sequence: 1, organization_id: one.organization_id, webhook_id: dead },
    ...{ claim_expire_time: new Date(), is_delivered: false, attempt_time: new Date() },
    ...{ duration_ms: 1, status_code: 410, error: 'gone', response_body: null },
    ...{ request_headers: null, response_headers: null },
    ...{ next_attempt_time: null, is_gone: true, was_failing: false },
  }
  expect(await recordAttempts(db, [attempt], new Date())).toEqual([dead])
  await announce()
  await one.call('EnableWebhook', { webhook_id: dead })
  await announce()
  const { organization_id } = one
  const expected = ['webhook_disabled', 'webhook_enabled'].map((event) => ({
    ...{ event, subject: dead, organization_id },
  }))
  expect(await notified(mine)).toEqual(expected)
  expect(await notified(operator)).toEqual(expected)
  expect(await notified(others)).toEqual([])
  await one.call('RemoveWebhook', { webhook_id: dead })
  await clear()
})

test('a transaction that is stuck, a limit that is nearly used and a repaired balance have one event each', async () => {
  const { organization_id } = two
  const now = new Date()
  const { wallet_id } = await two.call('RegisterWallet', { name: 'w' })
  await db
    .insertInto('managed_transaction')
    .values({
      ...{ organization_id, network_id, wallet_id, nonce: 1, transaction_id: 'tx-1' },
      transaction_state: 'TRANSACTION_STATE_SENT',
      ...{ from: bench.account(9), to: bench.account(8), value: 1n, gas: 21_000n, gas_price: 1n },
      ...{ data: Buffer.alloc(0), eip155_chain_id: 1n, request_hash: randomBytes(32) },
      ...{ transaction_hash: randomBytes(32), create_time: now, update_time: now },
      ...{ broadcast_count: 1, is_unsure: false, sent_time: new Date(now.getTime() - 700_000) },
    })
    .execute()
  const hour = new Date(Math.floor(now.getTime() / 3_600_000) * 3_600_000)
  await pool.query(`insert into rate_usage values ($1, 'c', 'hour', $2, 80)`, [
    organization_id,
    hour,
  ])
  const defaults = { per_hour_limit: 100, per_day_limit: -1, per_month_limit: 0 }
  for (let look = 0; look < 3; look++) {
    await lookForIncidents(db, { now, defaults })
    await announce()
  }
  await recordRepairs(
    db,
    [
      { organization_id, wallet_id },
      { organization_id, wallet_id },
    ],
    {
      ...{ network_id, now },
    },
  )
  await announce()
  await pool.query(`update managed_transaction set transaction_state = 'TRANSACTION_STATE_MINED'`)
  await lookForIncidents(db, { now: new Date(now.getTime() + 3_600_000), defaults })
  await announce()
  const events = (await notified(others)).map(({ event }) => event)
  expect(events.toSorted()).toEqual([
    'balance_repaired',
    'limit_near',
    'transaction_moved',
    'transaction_stuck',
  ])
  expect(await notified(mine)).toEqual([])
  const { rows } = await pool.query('select 1 from operational_event where resolve_time is null')
  expect(rows).toEqual([])
  await clear()
})

test('events of the installation and of an organization do not wait for those of another one', async () => {
  const kind = 'webhook_disabled'
  const open = (organization_id: string, subject: string, age: number) =>
    openOrganizationEvent(db, {
      ...{ kind, organization_id, network_id, subject, detail: 'gone' },
      now: new Date(Date.now() - age),
    })
  for (let at = 0; at < 60; at++) await open(one.organization_id, `many-${at}`, 60_000 - at)
  await open(two.organization_id, 'few', 2_000)
  await openEvent(db, { ...gap, detail: 'pruned', now: new Date() })
  const next = (await listPendingAnnouncements(db, 4)).map(({ subject }) => subject)
  expect(next).toEqual([gap.subject, 'many-0', 'few', 'many-1'])
  await announce()
  // In their order all the same.
  const subjects = (await notified(mine)).map(({ subject }) => subject)
  expect(subjects.filter((subject) => subject.startsWith('many'))).toEqual(
    Array.from({ length: 60 }, (_, at) => `many-${at}`),
  )
  expect(subjects).not.toContain('few')
  await clear()
})
