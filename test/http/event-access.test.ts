import { expect, test } from 'vitest'
import { startTestApp, type Tenant } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { authHeaders } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { createOwner, isReady, open, reasonOf, signed } from './event-streams.ts'

const chains = createScriptedChains()
const limits = { streams_per_key: 3, streams_per_organization: 5 }
const service = await startTestApp({ chains, config: { server: limits } })
// A second process on the same database.
const other = await startTestApp({ chains, beside: service })

test('a token opens one stream, of its own address, within a minute', async () => {
  const owner = await createOwner(service, chains)
  const create = async (at: string, app = service) =>
    (await app.call(owner.member, `${at}/CreateStreamToken`, {})).json.token as string
  const use = (token: string, path = '/v1/c/events', headers = {}) =>
    open(other, `${path}${path.includes('?') ? '&' : '?'}token=${token}`, headers)
  const refused = [401, 'INVALID_STREAM_TOKEN']

  const token = await create('c')
  // Attempts elsewhere do not spend it.
  expect(reasonOf(await use(token, '/v1/t/events'))).toEqual(refused)
  expect(reasonOf(await use(token, '/v1/events'))).toEqual(refused)
  expect(reasonOf(await use(token, '/v1/c/events', { origin: 'https://evil.example' }))).toEqual([
    403,
    'ORIGIN_NOT_ALLOWED',
  ])
  const stream = await use(token, '/v1/c/mainnet/events?types=transfer')
  await isReady(stream)
  owner.pay(5n)
  await waitFor('a transfer', () => stream.of('transfer').length === 1)
  expect(reasonOf(await use(token))).toEqual(refused)

  const all = await create('admin')
  expect(reasonOf(await use(all))).toEqual(refused)
  await isReady(await use(all, '/v1/events'))

  for (const bad of ['', 'x', `${await create('c')}A`, Buffer.from('{}').toString('base64url')])
    expect([bad.slice(0, 3), ...reasonOf(await use(bad))]).toEqual([bad.slice(0, 3), ...refused])
  // A page of the service itself, and one that may call it, open streams.
  const { host } = new URL(other.base_url)
  expect((await use(await create('c'), '/v1/c/events', { origin: `http://${host}` })).status).toBe(
    200,
  )

  const revoked = await create('c')
  await service.call(owner.admin, 'admin/RevokeCredential', { api_key: owner.member.api_key })
  expect(reasonOf(await use(revoked))).toEqual(refused)
})

test('requests without a valid signature are refused', async () => {
  const { member } = await createOwner(service, chains)
  const path = '/v1/c/events'
  expect(reasonOf(await open(service, path, {}))).toEqual([401, 'UNAUTHENTICATED'])
  const headers = authHeaders(member, { method: 'GET', path })
  expect(reasonOf(await open(service, `${path}?after=0`, headers))).toEqual([
    401,
    'UNAUTHENTICATED',
  ])
  expect((await open(service, path, headers)).status).toBe(200)
  expect(reasonOf(await open(service, path, headers))).toEqual([401, 'NONCE_REUSED'])
  const posted = authHeaders(member, { method: 'POST', path })
  expect(reasonOf(await open(service, path, posted))).toEqual([401, 'UNAUTHENTICATED'])
  expect((await service.send(path)).status).toBe(405)
})

test.each([
  ['/v1/c/events?after=x', 400],
  ['/v1/c/events?after=c%3D1', 400],
  ['/v1/events?after=1', 400],
  ['/v1/c/events?types=nothing', 400],
  ['/v1/c/events?walet=1', 400],
  ['/v1/c/events?chains=t', 400],
  ['/v1/events?chains=nothing', 404],
  ['/v1/nothing/events', 404],
  ['/v1/c/nothing/events', 404],
])('%s is answered with %i', async (path, status) => {
  const { member } = await service.createTenant()
  expect((await signed(service, member, path)).status).toBe(status)
})

test('a revoked key and a disabled organization end their streams, in every process', async () => {
  const owner = await createOwner(service, chains)
  const streams = [
    await signed(service, owner.member, '/v1/c/events'),
    await signed(other, owner.member, '/v1/c/events'),
  ]
  const kept = await signed(service, owner.admin, '/v1/c/events')
  for (const stream of [...streams, kept]) await isReady(stream)
  await service.call(owner.admin, 'admin/RevokeCredential', { api_key: owner.member.api_key })
  await waitFor('both end', () => streams.every((stream) => stream.isClosed()))
  expect(kept.isClosed()).toBe(false)
  const { admin } = await service.createTenant()
  await service.call(admin, 'admin/DisableOrganization', {
    organization_id: owner.organization_id,
  })
  await waitFor('the other ends', () => kept.isClosed())
})

test('streams count as usage, and refused ones are in the audit log', async () => {
  const owner = await createOwner(service, chains)
  const { json } = await service.call(owner.admin, 'admin/CreateCredential', {
    ...{ organization_id: owner.organization_id, name: 'other chain', scopes: ['t:read'] },
  })
  // Counts are written when the process stops.
  const process = await startTestApp({ chains, beside: service })
  await isReady(await signed(process, owner.member, '/v1/c/events'))
  expect((await signed(process, json.credential, '/v1/c/events')).status).toBe(403)
  await process.stop()
  const { json: used } = await service.call(owner.admin, 'admin/GetUsage', {
    organization_id: owner.organization_id,
  })
  const rows = used.usage.filter((row: { method: string }) => row.method === 'Events')
  expect(rows.map((row: { errors: number }) => row.errors).sort()).toEqual([0, 1])
  expect(rows).toMatchObject([
    { chain: 'c', calls: 1 },
    { chain: 'c', calls: 1 },
  ])
  await waitFor('the refusal is in the log', async () => {
    const { json: audited } = await service.call(owner.admin, 'admin/ListAuditEvents', {
      operation: 'Events',
    })
    return audited.audit_events.some(
      (event: { organization_id: string; service: string; reason: string }) =>
        event.organization_id === owner.organization_id &&
        event.service === 'c' &&
        event.reason === 'SCOPE_MISSING',
    )
  })
})

test('the streams of a key and of an organization are bounded', async () => {
  const { organization_id, member, admin }: Tenant = await service.createTenant()
  for (let count = 0; count < limits.streams_per_key; count++)
    expect((await signed(service, member, '/v1/c/events')).status).toBe(200)
  const beyond = await signed(service, member, '/v1/c/events')
  expect(reasonOf(beyond)).toEqual([429, 'TOO_MANY_OPEN'])
  expect(beyond.response.headers['retry-after']).toBe('5')
  const first = await signed(service, admin, '/v1/c/events')
  expect(first.status).toBe(200)
  const second = await signed(
    service,
    await service.createPair(organization_id, 'ROLE_READER'),
    '/v1/c/events',
  )
  expect(second.status).toBe(200)
  expect(reasonOf(await signed(service, admin, '/v1/c/events'))).toEqual([429, 'TOO_MANY_OPEN'])
  second.close()
  await waitFor('there is room again', async () => {
    const next = await signed(service, admin, '/v1/c/events')
    return next.status === 200
  })
})
