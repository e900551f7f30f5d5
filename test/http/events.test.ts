import { expect, test } from 'vitest'
import { createClient, PortolanError, type StreamEvent } from '../../client/src/index.ts'
import { pauseStreams } from '../../src/storage/webhooks/streams.ts'
import { startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { authHeaders } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { createOwner, isReady, open, type Parsed, reasonOf, signed } from './event-streams.ts'

const chains = createScriptedChains()
const service = await startTestApp({ chains })
// A second process on the same database.
const other = await startTestApp({ chains, beside: service })

const valuesOf = (events: readonly Parsed[]) =>
  events.flatMap(({ json }) =>
    (json.data.transfers as { value: string }[]).map(({ value }) => value),
  )
const sequencesOf = (events: readonly Parsed[]) => events.map(({ json }) => json.sequence)

test('transfers come with gapless numbers, and a stream resumes in another process', async () => {
  const owner = await createOwner(service, chains)
  const stream = await signed(service, owner.member, '/v1/c/events')
  expect(stream.response.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  await isReady(stream)
  expect(stream.of('ready')[0]?.id).toBe('0')
  owner.pay(1n)
  owner.pay(2n)
  await waitFor('two transfers', () => stream.of('transfer').length === 2)
  expect(stream.of('transfer').map(({ id }) => id)).toEqual(['1', '2'])
  expect(stream.of('transfer')[0]?.json).toMatchObject({
    type: 'transfer',
    chain: 'c',
    network: 'mainnet',
    sequence: 1,
    data: { sequence: 1, transfers: [{ value: '1' }] },
  })
  stream.close()
  owner.pay(3n)
  owner.pay(4n)
  const resumed = await open(other, '/v1/c/events', {
    ...authHeaders(owner.member, { method: 'GET', path: '/v1/c/events' }),
    'last-event-id': '1',
  })
  await waitFor('what was missed', () => resumed.of('transfer').length === 3)
  owner.pay(5n)
  await waitFor('what is new', () => resumed.of('transfer').length === 4)
  expect(sequencesOf(resumed.of('transfer'))).toEqual([2, 3, 4, 5])
  expect(valuesOf(resumed.of('transfer'))).toEqual(['2', '3', '4', '5'])
  // The position of the address counts where the browser sends none.
  const whole = await signed(service, owner.member, '/v1/c/mainnet/events?after=0&types=transfer')
  await waitFor('all of it', () => whole.of('transfer').length === 5)
  expect(sequencesOf(whole.of('transfer'))).toEqual([1, 2, 3, 4, 5])
  expect(whole.of('head')).toEqual([])
})

test('a pending transfer is followed by its confirmation, a reorganized one by a retraction', async () => {
  const owner = await createOwner(service, chains, 3)
  const stream = await signed(service, owner.admin, '/v1/c/events')
  await isReady(stream)
  owner.pay(7n)
  await waitFor('it is pending', () => stream.of('transfer').length === 1)
  chains.c.mine()
  chains.c.mine()
  await waitFor('it is confirmed', () => stream.of('confirmation').length === 1)
  const [pending, confirmed] = stream.of('transfer', 'confirmation')
  expect(pending?.json.data.transfers[0].transfer_state).toBe('TRANSFER_STATE_PENDING')
  expect(confirmed?.json.data.transfers[0].transfer_state).toBe('TRANSFER_STATE_SUCCESS')
  owner.pay(8n)
  await waitFor('the next one', () => stream.of('transfer').length === 2)
  const { block_number } = stream.of('transfer')[1]!.json.data.transfers[0]
  const elsewhere = await signed(other, owner.admin, '/v1/c/events?types=reorganization')
  await isReady(elsewhere)
  chains.c.reorganize(1, [[], []])
  await waitFor('it is taken back', () => stream.of('retraction').length === 1)
  expect(stream.of('retraction')[0]?.json.data.transfers[0]).toMatchObject({
    value: '8',
    transfer_state: 'TRANSFER_STATE_REORGED',
  })
  const stored = stream.events.filter(({ json }) => json.sequence !== undefined)
  expect(sequencesOf(stored)).toEqual([1, 2, 3, 4])
  // Announced by the tracker, however short it was, in every process.
  for (const one of [stream, elsewhere]) {
    await waitFor('administrators see it', () => one.of('reorganization').length > 0)
    expect(one.of('reorganization')[0]?.json).toMatchObject({
      ...{ chain: 'c', network: 'mainnet' },
      data: { from_block: `${block_number}`, to_block: `${block_number}` },
    })
  }
})

test('the stream is no webhook: it is neither listed nor counted nor delivered', async () => {
  const owner = await createOwner(service, chains)
  const stream = await signed(service, owner.member, '/v1/c/events')
  await isReady(stream)
  owner.pay(1n)
  await waitFor('a transfer', () => stream.of('transfer').length === 1)
  const { json: webhooks } = await service.call(owner.member, 'c/ListWebhooks')
  expect(webhooks.webhooks).toEqual([])
  const { json: histories } = await service.call(owner.member, 'c/ListWebhookHistories')
  expect(histories.webhook_histories).toEqual([])
  const { rows } = await service.database.pool.query(
    'select webhook_id, (select count(*)::int from delivery_queue q where q.webhook_id = w.webhook_id) as queued from webhook w where organization_id = $1',
    [owner.organization_id],
  )
  expect(rows).toEqual([{ webhook_id: expect.any(String), queued: 0 }])
  const [{ webhook_id }] = rows
  for (const operation of ['RemoveWebhook', 'DisableWebhook', 'GetWebhookSigningSecret'])
    await service.call(owner.member, `c/${operation}`, { webhook_id })
  const { json: asked } = await service.call(owner.member, 'c/ListWebhookHistories', { webhook_id })
  expect(asked.reason).toBe('WEBHOOK_NOT_FOUND')
  const { json: usage } = await service.call(owner.member, 'admin/GetUsage', {
    organization_id: owner.organization_id,
  })
  const quota = usage.quotas.find(
    (one: { quota_name: string }) => one.quota_name === 'QUOTA_WEBHOOKS',
  )
  expect(quota.used).toBe(0)
  owner.pay(2n)
  await waitFor('the next transfer', () => stream.of('transfer').length === 2)
})

test('tenants see only what is theirs', async () => {
  const [one, two] = [await createOwner(service, chains), await createOwner(service, chains)]
  const streams = [
    await signed(service, one.member, '/v1/c/events'),
    await signed(service, two.member, '/v1/c/events'),
  ]
  for (const stream of streams) await isReady(stream)
  one.pay(11n)
  two.pay(22n)
  one.pay(33n)
  await waitFor('all are there', () => streams[0]!.of('transfer').length === 2)
  await waitFor('and those', () => streams[1]!.of('transfer').length === 1)
  expect(streams.map((stream) => valuesOf(stream.of('transfer')))).toEqual([['11', '33'], ['22']])
  expect(streams[0]!.of('reorganization', 'problem', 'node')).toEqual([])
})

test('one connection has the events of all chains, with the positions of all', async () => {
  const owner = await createOwner(service, chains)
  const path = '/v1/events?chains=c,t'
  const stream = await signed(service, owner.member, path)
  await isReady(stream)
  expect(stream.of('ready')[0]?.id).toBe('c=0,t=0')
  owner.pay(1n)
  await waitFor('a transfer', () => stream.of('transfer').length === 1)
  expect(stream.of('transfer')[0]?.id).toBe('c=1,t=0')
  chains.t.mine()
  await waitFor('heads of both', () => {
    const named = new Set(stream.of('head').map(({ json }) => json.chain))
    return named.has('c') && named.has('t')
  })
  stream.close()
  owner.pay(2n)
  const again = await signed(service, owner.member, `${path}&after=c%3D1%2Ct%3D0`)
  await waitFor('it resumes', () => again.of('transfer').length === 1)
  expect(valuesOf(again.of('transfer'))).toEqual(['2'])
})

test('deliveries of webhooks are shown', async () => {
  const owner = await createOwner(service, chains)
  const { json } = await service.call(owner.member, 'c/RegisterWebhook', {
    ...{ webhook_endpoint: 'https://receiver.invalid/hook', confirmation: 1 },
  })
  const stream = await signed(service, owner.member, '/v1/c/events?types=delivery')
  await isReady(stream)
  await service.call(owner.member, 'c/SendTestWebhook', { webhook_id: json.webhook_id })
  await waitFor('the attempt', () => stream.of('delivery').length > 0)
  expect(stream.of('delivery')[0]?.json.data).toMatchObject({
    ...{ webhook_id: json.webhook_id, sequence: 1, attempt: 1, status_code: null },
    error: expect.stringMatching(/./),
  })
})

test('an unused stream is paused, and a position from before the pause is too old', async () => {
  const owner = await createOwner(service, chains)
  const stream = await signed(service, owner.member, '/v1/c/events')
  await isReady(stream)
  owner.pay(1n)
  await waitFor('a transfer', () => stream.of('transfer').length === 1)
  stream.close()
  const old = new Date(Date.now() - 1_000)
  await service.database.pool.query(
    "update webhook set update_time = $2 where organization_id = $1 and sink = 'stream'",
    [owner.organization_id, new Date(old.getTime() - 1)],
  )
  expect(await pauseStreams(service.database.db, old)).toBeGreaterThan(0)
  expect(await pauseStreams(service.database.db, old)).toBe(0)
  owner.pay(2n)
  await waitFor('it is tracked', async () => {
    const { json } = await service.call(owner.member, 'c/ListTransfers', {
      wallet_id: owner.wallet_id,
    })
    return json.transfers.length === 2
  })
  expect(reasonOf(await signed(service, owner.member, '/v1/c/events?after=1'))).toEqual([
    410,
    'EVENTS_EXPIRED',
  ])
  const again = await signed(service, owner.member, '/v1/c/events?types=transfer')
  await isReady(again)
  owner.pay(3n)
  await waitFor('what comes after it', () => again.of('transfer').length === 1)
  expect(valuesOf(again.of('transfer'))).toEqual(['3'])
  expect(sequencesOf(again.of('transfer'))).toEqual([3])
})

test('events that retention has removed are 410', async () => {
  const owner = await createOwner(service, chains)
  const stream = await signed(service, owner.member, '/v1/c/events')
  await isReady(stream)
  for (const value of [1n, 2n, 3n]) owner.pay(value)
  await waitFor('they are there', () => stream.of('transfer').length === 3)
  await service.database.pool.query(
    'delete from delivery where organization_id = $1 and sequence <= 2',
    [owner.organization_id],
  )
  const late = await signed(service, owner.member, '/v1/c/events?after=1')
  expect(reasonOf(late)).toEqual([410, 'EVENTS_EXPIRED'])
  expect(late.problem).toMatchObject({ oldest_sequence: '3', newest_sequence: '3' })
  expect(reasonOf(await signed(service, owner.member, '/v1/c/events?after=9'))).toEqual([
    410,
    'EVENTS_EXPIRED',
  ])
  const oldest = await signed(service, owner.member, '/v1/c/events?after=0')
  await waitFor('the oldest', () => oldest.of('transfer').length === 1)
  const edge = await signed(service, owner.admin, '/v1/c/events?after=2')
  await waitFor('the same', () => edge.of('transfer').length === 1)
})

test('a client that does not read is disconnected and resumes', async () => {
  const owner = await createOwner(service, chains)
  const slow = await signed(service, owner.member, '/v1/c/events?types=transfer')
  await isReady(slow)
  slow.response.pause()
  // Larger than what the sockets of both ends take.
  const blocks = 8
  const movements = Array.from({ length: 2_000 }, () => ({ to: owner.to, value: 1n }))
  for (let block = 0; block < blocks; block++) chains.c.mine([{ movements }])
  await waitFor('all are stored', async () => {
    const { rows } = await service.database.pool.query(
      'select max(sequence) as last from delivery where organization_id = $1',
      [owner.organization_id],
    )
    return Number(rows[0].last) === blocks
  })
  owner.pay(2n)
  slow.response.resume()
  await waitFor('it was disconnected', () => slow.isClosed())
  const seen = slow.of('transfer').at(-1)?.id ?? '0'
  const again = await signed(service, owner.member, `/v1/c/events?types=transfer&after=${seen}`)
  await waitFor('it has the last one', () => again.of('transfer').at(-1)?.id === `${blocks + 1}`)
  expect(sequencesOf([...slow.of('transfer'), ...again.of('transfer')])).toEqual(
    Array.from({ length: blocks + 1 }, (_, at) => at + 1),
  )
  // Several pages of bytes: all that was missed comes before the stream is live.
  await service.database.pool.query(
    `update delivery set data = data || jsonb_build_object('more', (
       select string_agg(md5(random()::text), '') from generate_series(1, 20000) where sequence > 0))
     where organization_id = $1`,
    [owner.organization_id],
  )
  const whole = await signed(other, owner.member, '/v1/c/events?types=transfer&after=0')
  await isReady(whole)
  expect(whole.events.map(({ type }) => type)).toEqual([
    ...Array.from({ length: blocks + 1 }, () => 'transfer'),
    'ready',
  ])
})

test('the typed client iterates, resumes over a restart, and is ended by its signal', async () => {
  const owner = await createOwner(service, chains)
  const first = await startTestApp({ chains, beside: service })
  let base = first.base_url
  // Like a load balancer: the address stays, the process changes.
  const fetch: typeof globalThis.fetch = (url, init) =>
    globalThis.fetch(`${url}`.replace('http://balancer.invalid', base), init)
  const client = createClient({ base_url: 'http://balancer.invalid', ...owner.member, fetch })
  const ending = new AbortController()
  const seen: StreamEvent[] = []
  const iterating = (async () => {
    for await (const event of client.c.events({ signal: ending.signal })) seen.push(event)
  })()
  const transfers = () => seen.filter(({ type }) => type === 'transfer')
  await waitFor('it is ready', () => seen.some(({ type }) => type === 'ready'))
  owner.pay(1n)
  await waitFor('the first', () => transfers().length === 1)
  base = other.base_url
  await first.stop()
  owner.pay(2n)
  await waitFor('the second', () => transfers().length === 2)
  expect(transfers().map(({ sequence, id }) => [sequence, id])).toEqual([
    [1, '1'],
    [2, '2'],
  ])
  ending.abort()
  await iterating
  const stranger = createClient({
    base_url: service.base_url,
    api_key: 'plk_none',
    api_secret: 'x',
  })
  await expect(stranger.c.events().next()).rejects.toThrow(PortolanError)
})
