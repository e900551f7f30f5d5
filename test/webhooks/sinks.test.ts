import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  openOrganizationEvent,
  resolveSubject,
} from '../../src/storage/tracking/operational-events.ts'
import { openKafka } from '../../src/workers/sinks/kafka.ts'
import { ForbiddenAddressError } from '../../src/workers/webhooks/guarded-lookup.ts'
import { startTestApp, type TestApp } from '../helpers/app.ts'
import { type Broker, readTopic, startKafka, startNats } from '../helpers/brokers.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { waitFor } from '../helpers/wait-for.ts'

const chains = createScriptedChains()
const webhooks = { allowed_networks: ['127.0.0.0/8'], allow_http: true }
const service = await startTestApp({ chains, config: { webhooks } })
const [nats, kafka] = [await startNats(), await startKafka()]
afterAll(async () => {
  await nats?.stop()
  await kafka?.stop()
})

// biome-ignore lint/suspicious/noExplicitAny: tests look at members of any event
type Event = any

const randomAddress = () =>
  `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(20))).toString('hex')}`

/** A tenant with some wallets on chain C, each of which can be paid. */
const createOwner = async (wallets = 1) => {
  const tenant = await service.createTenant()
  const call = async (name: string, body: object = {}, app: TestApp = service) => {
    const { status, json } = await app.call(tenant.member, `c/${name}`, body)
    return { status, ...json }
  }
  const mine = await Promise.all(
    Array.from({ length: wallets }, async () => {
      const { wallet_id } = await call('RegisterWallet', { name: 'wallet', confirmation: 1 })
      const address = randomAddress()
      await call('RegisterAddress', { wallet_id, address })
      const parsed = chains.c.parseAddress(address)
      if (!parsed.ok) throw new Error(parsed.detail)
      return { wallet_id: wallet_id as string, bytes: parsed.bytes }
    }),
  )
  const pay = (value: bigint, ...to: number[]) =>
    chains.c.mine([{ movements: to.map((index) => ({ to: mine[index]!.bytes, value })) }])
  const sink = async () => (await call('ListSinks')).sinks[0]
  return { ...tenant, call, wallets: mine, pay, sink }
}

const isPublished = (owner: { sink(): Promise<Event> }, position: number) =>
  waitFor(`the position is ${position}`, async () => (await owner.sink())?.position === position)

/** All messages of an organization in JetStream, in the order of the stream. */
const readStream = async (
  { server }: Broker,
  organization_id: string,
): Promise<{ subject: string; event: Event }[]> => {
  const connection = await connect({ servers: server })
  try {
    const manager = await jetstreamManager(connection)
    const { state } = await manager.streams.info('portolan')
    const found: { subject: string; event: Event }[] = []
    const { streams } = jetstream(connection)
    const stream = await streams.get('portolan')
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const message = await stream.getMessage({ seq })
      if (message?.subject.split('.')[1] === organization_id)
        found.push({ subject: message.subject, event: message.json() })
    }
    return found
  } finally {
    await connection.close()
  }
}

const sequencesOf = (messages: readonly { event: Event }[]) =>
  messages.map(({ event }) => Number(event.sequence))

const addStream = async ({ server }: Broker): Promise<void> => {
  const connection = await connect({ servers: server })
  await (await jetstreamManager(connection)).streams.add({
    name: 'portolan',
    subjects: ['portolan.>'],
  })
  await connection.close()
}
if (nats) await addStream(nats)

/** All records of an organization in the topic of its sink, in their order. */
const readRecords = async (
  { server }: Broker,
  organization_id: string,
): Promise<{ event: Event }[]> =>
  (await readTopic(server, 'portolan'))
    .filter(({ key }) => key.startsWith(organization_id))
    .map(({ payload }) => ({ event: JSON.parse(payload) }))

const kinds = [
  {
    ...{ name: 'NATS JetStream', sink_type: 'SINK_TYPE_NATS', shared: nats, startOwn: startNats },
    ...{ prepare: addStream, read: readStream },
    // What was published before a kill is there after it.
    isKept: true,
    // A repeated message is stored once.
    isRepeatDropped: true,
  },
  {
    ...{ name: 'Kafka', sink_type: 'SINK_TYPE_KAFKA', shared: kafka, startOwn: startKafka },
    ...{ prepare: async () => {}, read: readRecords },
    ...{ isKept: false, isRepeatDropped: false },
  },
]

describe.each(kinds)('a sink of $name', (kind) => {
  const { sink_type, shared, startOwn, prepare, read, isKept, isRepeatDropped } = kind
  const registered = { sink_type, tls: false, confirmation: 0 }

  test.skipIf(!shared)(
    'that cannot reach its broker delays no other, resumes after its position, and loses nothing',
    async () => {
      const own = (await startOwn())!
      onTestFinished(() => own.stop())
      await prepare(own)
      const [owner, other] = [await createOwner(), await createOwner()]
      await owner.call('RegisterSink', { ...registered, servers: [own.server] })
      await other.call('RegisterSink', { ...registered, servers: [shared!.server] })
      owner.pay(1n, 0)
      await isPublished(owner, 1)
      await own.kill()
      owner.pay(2n, 0)
      other.pay(1n, 0)
      await isPublished(other, 1)
      await waitFor('the failure is shown', async () => (await owner.sink()).last_error !== '')
      expect(await owner.sink()).toMatchObject({ position: 1, waiting_count: 1, enabled: true })
      // A second process on the same database may take over.
      const beside = await startTestApp({ chains, beside: service, config: { webhooks } })
      await own.start()
      owner.pay(3n, 0)
      await isPublished(owner, 3)
      await waitFor('the error is over', async () => (await owner.sink()).last_error === '')
      await beside.stop()
      owner.pay(4n, 0)
      await isPublished(owner, 4)
      // It accepts connections and answers nothing.
      own.pause()
      owner.pay(5n, 0)
      other.pay(2n, 0)
      await isPublished(other, 2)
      expect(await owner.sink()).toMatchObject({ position: 4, enabled: true })
      own.resume()
      await isPublished(owner, 5)
      const sequences = sequencesOf(await read(own, owner.organization_id))
      const expected = isKept ? [1, 2, 3, 4, 5] : [2, 3, 4, 5]
      // In order, and where the broker drops no repetitions, at least once.
      expect(isRepeatDropped ? sequences : [...new Set(sequences)]).toEqual(expected)
    },
  )

  test.skipIf(!shared)('repeats what it does not know to be published with its id', async () => {
    const owner = await createOwner()
    const { sink_id } = await owner.call('RegisterSink', {
      ...registered,
      servers: [shared!.server],
    })
    owner.pay(1n, 0)
    await isPublished(owner, 1)
    // As after a crash between the acknowledgement and the new position.
    await service.database.pool.query('update sink set position = 0 where webhook_id = $1', [
      sink_id,
    ])
    owner.pay(2n, 0)
    await isPublished(owner, 2)
    const messages = await read(shared!, owner.organization_id)
    expect(sequencesOf(messages)).toEqual(isRepeatDropped ? [1, 2] : [1, 1, 2])
    expect(new Set(messages.map(({ event }) => event.id)).size).toBe(2)
  })
})

describe.skipIf(!nats)('NATS JetStream', () => {
  const broker = nats!
  const registered = { sink_type: 'SINK_TYPE_NATS', tls: false, confirmation: 0 }

  test('a sink that subscribes to operational events gets the beginning and the end of one', async () => {
    const owner = await createOwner()
    const events = ['WEBHOOK_EVENT_TRANSFER', 'WEBHOOK_EVENT_OPERATIONAL']
    const servers = [broker.server]
    await owner.call('RegisterSink', { ...registered, servers, events })
    expect((await owner.sink()).events).toEqual(events)
    const { organization_id } = owner
    const subject = randomUUID()
    const kind = 'transaction_stuck'
    const { db } = service.database
    const { network_id } = await db
      .selectFrom('network')
      .select('network_id')
      .where('chain', '=', 'c')
      .executeTakeFirstOrThrow()
    await openOrganizationEvent(db, {
      ...{ kind, organization_id, subject, network_id },
      ...{ detail: 'It is in no block.', now: new Date() },
    })
    await isPublished(owner, 1)
    await resolveSubject(db, { kind, subject, now: new Date() })
    await isPublished(owner, 2)
    const messages = await readStream(broker, organization_id)
    expect(messages.map((one) => [one.subject, one.event.type])).toEqual([
      [`portolan.${organization_id}.c.mainnet._`, 'portolan.operational'],
      [`portolan.${organization_id}.c.mainnet._`, 'portolan.operational'],
    ])
    expect(messages.map(({ event }) => event.data.operational_event)).toMatchObject([
      { event: 'transaction_stuck', subject, detail: 'It is in no block.', resolve_time: null },
      { event: 'transaction_moved', subject, resolve_time: expect.any(String) },
    ])
    const refused = await owner.call('RegisterSink', {
      ...{ ...registered, servers, events: ['WEBHOOK_EVENT_INSTALLATION'] },
    })
    expect(refused).toMatchObject({ status: 403, missing: 'ROLE_ADMIN' })
  })

  test('events arrive on the subject of their wallet, and the position follows', async () => {
    const owner = await createOwner(2)
    const { sink_id } = await owner.call('RegisterSink', {
      ...registered,
      servers: [broker.server],
    })
    owner.pay(1n, 0)
    owner.pay(2n, 0, 1)
    await isPublished(owner, 2)
    const messages = await readStream(broker, owner.organization_id)
    const prefix = `portolan.${owner.organization_id}.c.mainnet`
    const [first, second] = owner.wallets.map(({ wallet_id }) => `${prefix}.${wallet_id}`)
    expect(messages.map(({ subject, event }) => [subject, Number(event.sequence)])).toEqual(
      expect.arrayContaining([
        [first, 1],
        [first, 2],
        [second, 2],
      ]),
    )
    expect(messages).toHaveLength(3)
    expect(messages.find(({ subject }) => subject === first)?.event).toMatchObject({
      specversion: '1.0',
      type: 'portolan.transfer',
      subject: owner.wallets[0]!.wallet_id,
      data: { sequence: 1, transfers: [{ value: '1' }] },
    })
    expect(await owner.sink()).toMatchObject({
      sink_id,
      waiting_count: 0,
      last_error: '',
      username: '',
    })
    // A sink is not a webhook of the other operations.
    expect((await owner.call('ListWebhooks')).webhooks).toEqual([])
    expect((await owner.call('ListWebhookHistories')).webhook_histories).toEqual([])
    expect((await owner.call('DisableWebhook', { webhook_id: sink_id })).reason).toBe(
      'WEBHOOK_NOT_FOUND',
    )
  })

  test('an event that is too large is set aside and named, and those after it are published', async () => {
    const connection = await connect({ servers: broker.server })
    await (await jetstreamManager(connection)).streams.add({
      ...{ name: 'small', subjects: ['small.>'], max_msg_size: 4_000 },
    })
    const owner = await createOwner()
    const { sink_id } = await owner.call('RegisterSink', {
      ...{ ...registered, servers: [broker.server], subject_prefix: 'small' },
    })
    owner.pay(1n, 0)
    owner.pay(2n, ...Array.from({ length: 40 }, () => 0))
    owner.pay(3n, 0)
    await isPublished(owner, 3)
    const stream = await jetstream(connection).streams.get('small')
    const { state } = await stream.info()
    const stored = []
    for (let seq = state.first_seq; seq <= state.last_seq; seq++)
      stored.push((await stream.getMessage({ seq }))!.json<Event>())
    await connection.close()
    expect(stored.map(({ sequence }) => Number(sequence))).toEqual([1, 3])
    expect((await owner.sink()).last_error).toMatch(/^Event 2 \(.+\) was set aside: \d+ bytes/)
    expect(await owner.sink()).toMatchObject({ enabled: true, waiting_count: 0 })
    const { rows } = await service.database.pool.query(
      'select kind, detail from operational_event where organization_id = $1 and subject = $2',
      [owner.organization_id, sink_id],
    )
    expect(rows).toEqual([{ kind: 'sink_event_refused', detail: (await owner.sink()).last_error }])
  })

  test('a sink whose events were deleted is not claimed all the time', async () => {
    const owner = await createOwner()
    const { sink_id } = await owner.call('RegisterSink', {
      ...registered,
      servers: [broker.server],
    })
    owner.pay(1n, 0)
    await isPublished(owner, 1)
    const claims = async () => {
      const { rows } = await service.database.pool.query<{ epoch: string }>(
        'select epoch from sink where webhook_id = $1',
        [sink_id],
      )
      return Number(rows[0]!.epoch)
    }
    const before = await claims()
    await service.database.pool.query(
      'update webhook set next_sequence = next_sequence + 3 where webhook_id = $1',
      [sink_id],
    )
    await waitFor('it is claimed', async () => (await claims()) > before)
    await delay(1_000)
    expect((await claims()) - before).toBeLessThanOrEqual(2)
  })

  test('a sink is disabled, changed, enabled and removed', async () => {
    const owner = await createOwner()
    const { sink_id } = await owner.call('RegisterSink', {
      ...{ ...registered, servers: ['127.0.0.1:9999'] },
      ...{ username: 'user', password: 'secret-of-the-sink' },
    })
    await owner.call('DisableSink', { sink_id })
    owner.pay(1n, 0)
    await waitFor('the event waits', async () => (await owner.sink()).waiting_count === 1)
    expect(await owner.sink()).toMatchObject({ enabled: false, username: 'user', position: 0 })
    expect(JSON.stringify(await owner.call('ListSinks'))).not.toContain('secret-of-the-sink')
    const { rows } = await service.database.pool.query('select * from sink, webhook')
    expect(JSON.stringify(rows)).not.toContain('secret-of-the-sink')
    const moved = { sink_id, servers: [broker.server] }
    expect(await owner.call('UpdateSink', moved)).toMatchObject({
      ...{ status: 400, errors: [{ field: 'password', reason: 'REQUIRED' }] },
    })
    await owner.call('UpdateSink', { ...moved, username: 'user', password: 'another-secret' })
    await owner.call('EnableSink', { sink_id })
    await isPublished(owner, 1)
    await owner.call('RemoveSink', { sink_id })
    expect((await owner.call('RemoveSink', { sink_id })).status).toBe(200)
    expect((await owner.call('ListSinks')).sinks).toEqual([])
    expect((await owner.call('EnableSink', { sink_id })).reason).toBe('SINK_NOT_FOUND')
    await waitFor('its events are deleted', async () => {
      const { rowCount } = await service.database.pool.query(
        'select from delivery where webhook_id = $1 union all select from sink where webhook_id = $1',
        [sink_id],
      )
      return rowCount === 0
    })
  })
})

describe.skipIf(!kafka)('Kafka', () => {
  test('records have the key of their wallet, in the order of the sequence', async () => {
    const owner = await createOwner(2)
    const registered = {
      sink_type: 'SINK_TYPE_KAFKA',
      tls: false,
      confirmation: 0,
      topic: 'events',
    }
    await owner.call('RegisterSink', { ...registered, servers: [kafka!.server] })
    for (let value = 1n; value <= 5n; value++) owner.pay(value, 0)
    owner.pay(6n, 0, 1)
    await isPublished(owner, 6)
    const records = await readTopic(kafka!.server, 'events')
    const key = (index: number) =>
      `${owner.organization_id}/c/mainnet/${owner.wallets[index]!.wallet_id}`
    const of = (index: number) =>
      records
        .filter((record) => record.key === key(index))
        .map(({ payload }) => Number(JSON.parse(payload).sequence))
    expect(of(0)).toEqual([1, 2, 3, 4, 5, 6])
    expect(of(1)).toEqual([6])
    const [record] = records.filter((one) => one.key === key(0))
    expect(JSON.parse(record!.payload)).toMatchObject({
      specversion: '1.0',
      data: { transfers: [{ value: '1' }] },
    })
  })
})

describe.skipIf(!kafka)('brokers that a cluster announces', () => {
  test('are checked like the servers of the user', async () => {
    const asked: string[] = []
    const publisher = await openKafka({
      source: { organization_id: 'o', chain: 'c', network: 'mainnet' },
      settings: {
        servers: [`broker.test:${kafka!.server.split(':')[1]}`],
        tls: false,
        topic: 'guarded',
      },
      credentials: {},
      timeoutMs: 5_000,
      guard: {
        lookup: () => {},
        // The first server is allowed, what the cluster announces is not.
        resolve: async (host) => {
          asked.push(host)
          if (host === 'broker.test') return '127.0.0.1'
          throw new ForbiddenAddressError('Is not a public address.')
        },
      },
    })
    onTestFinished(() => publisher.stop())
    const message = { id: '1', wallet: 'w', body: Buffer.from('{}') }
    const published = publisher.publish([message], AbortSignal.timeout(20_000))
    await expect(published).rejects.toThrow()
    expect(asked).toContain('127.0.0.1')
    expect(await readTopic(kafka!.server, 'guarded')).toEqual([])
  })
})

test('servers must be public and encrypted unless the installation allows others', async () => {
  const strict = await startTestApp({ chains, beside: service })
  onTestFinished(() => strict.stop())
  const { member } = await service.createTenant()
  const register = async (servers: string[], more: object = {}) => {
    const { json } = await strict.call(member, 'c/RegisterSink', {
      ...{ sink_type: 'SINK_TYPE_KAFKA', confirmation: 0, servers, ...more },
    })
    return (json.errors ?? []).map(({ field, reason }: Event) => [field, reason])
  }
  const invalid = (field: string) => [[field, 'INVALID_ENDPOINT']]
  expect(await register(['10.0.0.1:9092'])).toEqual(invalid('servers[0]'))
  expect(await register(['broker.example.org:9092', '0x7f.1:9092'])).toEqual(invalid('servers[1]'))
  expect(await register(['broker.example.org'])).toEqual(invalid('servers[0]'))
  expect(await register(['user:password@broker.example.org:9092'])).toEqual(invalid('servers[0]'))
  expect(await register(['broker.example.org:25'])).toEqual(invalid('servers[0]'))
  expect(await register(['broker.example.org:9092'], { tls: false })).toEqual(invalid('tls'))
  expect(await register(['broker.example.org:9092'], { password: 'alone' })).toEqual([
    ['password', 'INVALID_FORMAT'],
  ])
  expect(await register(['broker.example.org:9092'])).toEqual([])
})
