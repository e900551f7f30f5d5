import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import { createReachable } from '../../lib/net/reachable.ts'
import { removeEvents } from '../../storage/webhooks/sinks.ts'

const { db } = await freshDatabase()
const bench = await createWalletBench(db, 'c')
bench.installation.endpoints = { reachable: createReachable(), allowHttp: true }
const { call, organization_id } = await bench.createCaller()
const nats = { sink_type: 'SINK_TYPE_NATS', confirmation: 1 }
const kafka = { sink_type: 'SINK_TYPE_KAFKA', confirmation: 1 }
const servers = ['a.example:4222', 'b.example:4222']
const password = { username: 'user', password: 'secret' }

const register = async (fields: object) =>
  (await call('RegisterSink', { servers, ...fields })).sink_id as string
/** The bad fields of an update, or nothing where it is done. */
const fieldsOf = async (operation: string, request: object) =>
  await call(operation, request).then(
    () => [],
    (error: unknown) => {
      if (error instanceof OperationError) return error.errors?.map(({ field }) => field)
      throw error
    },
  )
const update = (sink_id: string, request: object) => fieldsOf('UpdateSink', { sink_id, ...request })
const serversOf = async (sink_id: string) =>
  (await call('ListSinks')).sinks.find((sink: { sink_id: string }) => sink.sink_id === sink_id)

it('sends stored credentials nowhere that a caller names without knowing them', async () => {
  for (const [fields, again, field] of [
    [{ ...nats, ...password }, password, 'password'],
    [{ ...kafka, ...password }, password, 'password'],
    [{ ...nats, token: 'secret' }, { token: 'secret' }, 'token'],
  ] as const) {
    const sink_id = await register(fields)
    const own = ['own.example:4222']
    expect(await update(sink_id, { servers: own })).toEqual([field])
    expect(await update(sink_id, { servers: [...servers, ...own] })).toEqual([field])
    expect(await update(sink_id, { servers: ['a.example:4223'] })).toEqual([field])
    expect(await update(sink_id, { tls: false })).toEqual([field])
    expect(await serversOf(sink_id)).toMatchObject({ servers, tls: true })
    // Fewer servers, or those there were in another order, learn nothing.
    expect(await update(sink_id, { servers: [servers[1]] })).toEqual([])
    expect(await update(sink_id, { tls: true })).toEqual([])
    expect(await update(sink_id, { servers: own, tls: false, ...again })).toEqual([])
    expect(await serversOf(sink_id)).toMatchObject({ servers: own, tls: false })
    expect(await update(sink_id, { tls: true })).toEqual([])
    await call('RemoveSink', { sink_id })
  }
})

it('is moved freely where it has no password', async () => {
  const sink_id = await register(nats)
  expect(await update(sink_id, { servers: ['c.example:4222'], tls: false })).toEqual([])
})

it.each([
  [nats, { subject_prefix: 'mine', topic: '' }],
  [kafka, { subject_prefix: '', topic: 'mine' }],
])('ignores the name for the other broker: clients send defaults', async (fields, named) => {
  const names = {
    subject_prefix: named.subject_prefix || 'portolan',
    topic: named.topic || 'portolan',
  }
  expect(await serversOf(await register({ ...fields, ...names }))).toMatchObject(named)
})

it('refuses credentials that would be ignored', async () => {
  const mechanism = { sasl_mechanism: 'SCRAM-SHA-512' }
  const sink_id = await register({ ...kafka, ...password })
  expect(await update(sink_id, { tls: true, ...mechanism })).toEqual(['sasl_mechanism'])
  expect(await update(sink_id, { ...password, ...mechanism })).toEqual([])
  const request = { servers, ...nats, ...password, ...mechanism }
  expect(await fieldsOf('RegisterSink', request)).toEqual(['sasl_mechanism'])
})

it('leaves events of the installation to an administrator', async () => {
  const events = ['WEBHOOK_EVENT_INSTALLATION']
  const admin = await bench.createCaller({ role: 'ROLE_ADMIN', organization_id })
  const { sink_id } = await admin.call('RegisterSink', { servers, ...nats, events })
  const member = await bench.createCaller({ organization_id })
  const own = { sink_id, servers: ['own.example:4222'] }
  expect(await member.reason('UpdateSink', own)).toBe('PERMISSION_DENIED')
  expect(await admin.reason('UpdateSink', own)).toBe('OK')
})

it('is removed in a transaction that deletes no event: a worker deletes those that wait, too, page by page', async () => {
  const sink_id = await register(nats)
  await sql`
    insert into delivery (webhook_history_id, organization_id, network_id, webhook_id, notification_type, data, block_number,
      due_block, create_time)
    select gen_random_uuid(), ${organization_id}, ${bench.network_id}, ${sink_id}, 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', '{}', n,
      n + 9, now()
    from generate_series(1, 250) n`.execute(db)
  const countOf = async (table: string) => {
    const { rows } = await sql<{ count: number }>`
      select count(*) from ${sql.table(table)} where webhook_id = ${sink_id}`.execute(db)
    return rows[0]!.count
  }
  await call('RemoveSink', { sink_id })
  expect([await countOf('webhook'), await countOf('sink'), await countOf('delivery')]).toEqual([
    0, 1, 250,
  ])
  const left: number[] = []
  // Sinks of other tests are removed here as well.
  while (await removeEvents(db, 100)) left.push(await countOf('delivery'))
  expect([...new Set(left)].slice(-4)).toEqual([250, 150, 50, 0])
  expect(await countOf('sink')).toBe(0)
})
