import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as Svix } from 'svix'
import { describe, expect, it } from 'vitest'
import { notificationTypes } from '../../src/contract/records/states.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import { queueNotifications } from '../../src/storage/webhooks/notifications.ts'
import { freshDatabase } from '../helpers/database.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { createWebhookBench } from './harness.ts'
import { type Received, startReceiver } from './receiver.ts'

const database = await freshDatabase()

/** Verifies with both libraries at the time of the delivery, which they compare with the machine's. */
const verify = (secret: string, { headers, body }: Received) => {
  const now = Date.now
  Date.now = () => Number(headers['webhook-timestamp']) * 1000
  const RealDate = Date
  try {
    globalThis.Date = class extends RealDate {
      constructor(...given: []) {
        super(...(given.length > 0 ? given : ([RealDate.now()] as unknown as [])))
      }
    } as DateConstructor
    globalThis.Date.now = RealDate.now
    const known = headers as Record<string, string>
    new StandardWebhook(secret).verify(body, known)
    new Svix(secret).verify(body, known)
  } finally {
    globalThis.Date = RealDate
    Date.now = now
  }
}

describe.each<WalletService>(['t', 's', 'p', 'c'])('deliveries of %s', (service) => {
  it('are signed, numbered and recorded, in the order of their numbers', async () => {
    const bench = await createWebhookBench(database, service)
    const receiver = await startReceiver()
    receiver.answer((response) => response.writeHead(200).end('thanks'))
    const webhook_id = await bench.register(receiver.url)
    const ids: string[] = []
    for (let made = 0; made < 20; made++) ids.push(await bench.test(webhook_id))
    // A thousand in all four services.
    const { organization_id } = bench.caller
    const more = Array.from({ length: 230 }, () => ({
      organization_id,
      network_id: bench.bench.network_id,
      webhook_id,
      notification_type: notificationTypes[service],
      data: { transfers: [] },
    }))
    ids.push(...(await queueNotifications(database.db, more, new Date(bench.clock.now()))))
    const courier = bench.startCourier({ limits: { perReceiver: 1, total: 100 } })
    await bench.settled(courier)
    expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual(ids)
    expect(receiver.received.map(({ json }) => json.data.sequence)).toEqual(
      ids.map((_, index) => index + 1),
    )
    // One at a time: each uses the connection of the one before.
    expect(receiver.connections()).toBe(1)
    const { signing_secret } = await bench.caller.call('GetWebhookSigningSecret', { webhook_id })
    for (const delivery of receiver.received) verify(signing_secret, delivery)
    expect(receiver.received[0]!.json).toMatchObject({
      webhook_id,
      webhook_history_id: ids[0],
      notification_type: notificationTypes[service],
      create_time: '2026-03-01T12:00:00.000Z',
    })
    expect(receiver.received[0]!.headers).toMatchObject({ 'content-type': 'application/json' })
    expect(await bench.attempts(ids[0]!)).toMatchObject([
      { attempt: 1, at: 0, status_code: 200, error: '', response_body: 'thanks' },
    ])
    const [shown] = (
      await bench.caller.call('ListWebhookAttempts', { webhook_history_id: ids[0]! })
    ).webhook_attempts
    const sent = receiver.received[0]!.headers
    for (const { header_key, header_value } of shown!.request_headers)
      expect([header_key, header_value]).toEqual([header_key, sent[header_key]])
    expect(shown!.request_headers).toHaveLength(6)
    expect(JSON.stringify(shown!.response_headers)).toContain('"header_key":"date"')
    const { webhook_histories } = await bench.caller.call('ListWebhookHistories', { webhook_id })
    expect(webhook_histories[0]).toMatchObject({
      webhook_status: 'WEBHOOK_STATUS_COMPLETED',
      delivery_count: 1,
      delivery_time: '2026-03-01T12:00:00.000Z',
    })
  })
})

it('carry the headers of their webhook before those of all', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  const [one, two] = [await bench.register(receiver.url), await bench.register(receiver.url)]
  const add = (header_key: string, header_value: string, webhook_id?: string) =>
    bench.caller.call('RegisterWebhookHeader', {
      header_key,
      header_value,
      ...(webhook_id && { webhook_id }),
    })
  await add('X-Token', 'for-all')
  await add('x-token', 'for-one', one)
  await add('X-Only', 'two', two)
  // Of the same organization on another chain: not theirs.
  const { network_id } = await createWebhookBench(database, 's').then((other) => other.bench)
  await database.pool.query(
    `insert into webhook_header
     select gen_random_uuid(), organization_id, $2, null, 'x-elsewhere', header_value_sealed, now()
     from webhook_header where organization_id = $1 and webhook_id is null`,
    [bench.caller.organization_id, network_id],
  )
  await add('User-Agent', 'ours', two)
  const courier = bench.startCourier()
  for (const webhook_id of [one, two]) await bench.test(webhook_id)
  await bench.settled(courier)
  const byWebhook = new Map(
    receiver.received.map(({ json, headers }) => [json.webhook_id, headers]),
  )
  expect(byWebhook.get(one)).toMatchObject({ 'x-token': 'for-one' })
  expect(byWebhook.get(one)).not.toHaveProperty('x-only')
  for (const headers of byWebhook.values()) expect(headers).not.toHaveProperty('x-elsewhere')
  expect(byWebhook.get(two)).toMatchObject({ 'x-token': 'for-all', 'x-only': 'two' })
  const agents = receiver.received.map(({ json, headersDistinct }) => [
    json.webhook_id,
    headersDistinct['user-agent'],
  ])
  expect(Object.fromEntries(agents)).toEqual({ [one]: ['Portolan'], [two]: ['ours'] })
})

it('are signed with both secrets for a day after a rotation', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  const webhook_id = await bench.register(receiver.url)
  const courier = bench.startCourier()
  const secret = async () =>
    (await bench.caller.call('GetWebhookSigningSecret', { webhook_id })).signing_secret
  const old = await secret()
  await bench.caller.call('RotateWebhookSigningSecret', { webhook_id })
  const fresh = await secret()
  await bench.test(webhook_id)
  await bench.pass(courier, 23 * 3_600_000)
  await bench.test(webhook_id)
  await bench.pass(courier, 2 * 3_600_000)
  await bench.test(webhook_id)
  await bench.settled(courier)
  const [first, second, third] = receiver.received as [Received, Received, Received]
  for (const delivery of [first, second]) {
    verify(old, delivery)
    verify(fresh, delivery)
  }
  verify(fresh, third)
  expect(() => verify(old, third)).toThrow()
  expect(() => verify(fresh, { ...third, body: `${third.body} ` })).toThrow()
})

it('are signed with every secret of the last day, however often it was changed', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  const webhook_id = await bench.register(receiver.url)
  const courier = bench.startCourier()
  const hour = 3_600_000
  const rotate = async () =>
    (await bench.caller.call('RotateWebhookSigningSecret', { webhook_id })).signing_secret
  const { signing_secret: first } = await bench.caller.call('GetWebhookSigningSecret', {
    webhook_id,
  })
  const second = await rotate()
  await bench.pass(courier, hour)
  const third = await rotate()
  for (const wait of [0, 22 * hour, hour + 1_000, hour]) {
    await bench.pass(courier, wait)
    await bench.test(webhook_id)
    await bench.settled(courier)
  }
  const fits = (secret: string, delivery: Received) => {
    try {
      verify(secret, delivery)
      return true
    } catch {
      return false
    }
  }
  expect(
    receiver.received.map((delivery) => [first, second, third].map((one) => fits(one, delivery))),
  ).toEqual([
    [true, true, true],
    [true, true, true],
    [false, true, true],
    [false, false, true],
  ])
  const secrets = [third]
  for (let made = 0; made < 10; made++) secrets.push(await rotate())
  await bench.test(webhook_id)
  await bench.settled(courier)
  // So many that the header stays short, and always the newest ones.
  expect(secrets.map((one) => fits(one, receiver.received.at(-1)!))).toEqual(
    secrets.map((_, index) => index >= 2),
  )
})

it('continue where they stopped when a webhook is enabled again', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  const webhook_id = await bench.register(receiver.url)
  const courier = bench.startCourier()
  receiver.answer((response) => response.writeHead(410).end())
  const gone = await bench.test(webhook_id)
  await bench.settled(courier)
  expect(await bench.history(gone)).toEqual({
    webhook_status: 'WEBHOOK_STATUS_ON_HOLD',
    delivery_count: 1,
  })
  const { webhooks } = await bench.caller.call('ListWebhooks')
  expect(webhooks).toMatchObject([
    {
      enabled: false,
      disable_reason: 'The endpoint answered 410 Gone.',
      last_error: 'The endpoint answered 410.',
      success_rate: 0,
    },
  ])
  receiver.answer((response) => response.writeHead(200).end())
  receiver.received.length = 0
  await bench.pass(courier, 10 * 86_400_000)
  expect(receiver.received).toEqual([])
  await bench.caller.call('EnableWebhook', { webhook_id })
  await bench.settled(courier)
  expect(receiver.received.map(({ json }) => json.data.sequence)).toEqual([1])
  expect(await bench.history(gone)).toEqual({
    webhook_status: 'WEBHOOK_STATUS_COMPLETED',
    delivery_count: 2,
  })
})

it('that all fail for five days disable the webhook; nothing is lost', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  const webhook_id = await bench.register(receiver.url)
  const courier = bench.startCourier({ limits: { perReceiver: 1, total: 10 } })
  receiver.answer((response) => response.writeHead(500).end())
  const first = await bench.test(webhook_id)
  await bench.pass(courier, 4 * 86_400_000)
  expect((await bench.history(first)).webhook_status).toBe('WEBHOOK_STATUS_FAILED')
  const second = await bench.test(webhook_id)
  const third = await bench.test(webhook_id)
  await bench.pass(courier, 2 * 86_400_000)
  const { webhooks } = await bench.caller.call('ListWebhooks')
  expect(webhooks).toMatchObject([
    { enabled: false, disable_reason: 'Every delivery failed for 5 days.' },
  ])
  for (const id of [second, third])
    expect((await bench.history(id)).webhook_status).toBe('WEBHOOK_STATUS_ON_HOLD')
  receiver.answer((response) => response.writeHead(200).end())
  const before = receiver.received.length
  await bench.caller.call('EnableWebhook', { webhook_id })
  await bench.settled(courier)
  // What had failed permanently before the webhook was disabled too, and in order.
  const resumed = receiver.received.slice(before).map(({ json }) => json.data.sequence)
  expect(resumed).toEqual([1, 2, 3])
  for (const id of [first, second, third])
    expect((await bench.history(id)).webhook_status).toBe('WEBHOOK_STATUS_COMPLETED')
})

it('of one that was removed in the meantime end quietly', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  const webhook_id = await bench.register(receiver.url)
  const id = await bench.test(webhook_id)
  await bench.caller.call('RemoveWebhook', { webhook_id })
  const courier = bench.startCourier()
  await bench.settled(courier)
  expect(receiver.received).toEqual([])
  expect((await bench.history(id)).webhook_status).toBe('WEBHOOK_STATUS_FAILED')
})

it('that are under way when a courier stops are finished and recorded', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  const held: (() => void)[] = []
  receiver.answer((response) => held.push(() => response.writeHead(204).end()))
  const webhook_id = await bench.register(receiver.url)
  const ids = [await bench.test(webhook_id), await bench.test(webhook_id)]
  const courier = bench.startCourier({ timeoutMs: 30_000 })
  await waitFor('both are under way', () => held.length === 2)
  const late = await bench.test(webhook_id)
  const stopping = courier.stop()
  for (const answer of held) answer()
  await stopping
  for (const id of ids)
    expect(await bench.history(id)).toEqual({
      webhook_status: 'WEBHOOK_STATUS_COMPLETED',
      delivery_count: 1,
    })
  expect((await bench.history(late)).delivery_count).toBe(0)
  expect(receiver.received).toHaveLength(2)
})

it('that are not answered before a courier must end are given back at once', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  let isSilent = true
  receiver.answer((response) => {
    if (!isSilent) response.writeHead(204).end()
  })
  const id = await bench.test(await bench.register(receiver.url))
  const first = bench.startCourier({ timeoutMs: 30_000, stopTimeoutMs: 10 })
  await waitFor('it is under way', () => receiver.received.length === 1)
  await first.stop()
  expect(await bench.history(id)).toEqual({
    webhook_status: 'WEBHOOK_STATUS_PENDING',
    delivery_count: 0,
  })
  isSilent = false
  await bench.settled(bench.startCourier())
  expect((await bench.history(id)).webhook_status).toBe('WEBHOOK_STATUS_COMPLETED')
  const [one, two] = receiver.received
  expect(two!.headers['webhook-id']).toBe(one!.headers['webhook-id'])
  expect(two!.body).toBe(one!.body)
})

it('of two couriers are sent by one of them each', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  const hooks = [await bench.register(receiver.url), await bench.register(receiver.url)]
  const ids = new Set<string>()
  for (let made = 0; made < 100; made++) ids.add(await bench.test(hooks[made % 2]!))
  const couriers = [bench.startCourier(), bench.startCourier()]
  for (const courier of couriers) await bench.settled(courier)
  expect(receiver.received).toHaveLength(ids.size)
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id']))).toEqual(ids)
})

it('of a webhook whose secret cannot be read do not stop the others', async () => {
  const bench = await createWebhookBench(database)
  const receiver = await startReceiver()
  const [bad, good] = [await bench.register(receiver.url), await bench.register(receiver.url)]
  await database.pool.query(
    'update webhook set secret_sealed = secret_sealed || $2 where webhook_id = $1',
    [bad, Buffer.from('x')],
  )
  const stuck = await bench.test(bad)
  const id = await bench.test(good)
  const courier = bench.startCourier()
  await waitFor('the other one is delivered', () => courier.status().delivered === 1)
  await courier.stop()
  expect((await bench.history(id)).webhook_status).toBe('WEBHOOK_STATUS_COMPLETED')
  expect((await bench.history(stuck)).delivery_count).toBe(0)
})
