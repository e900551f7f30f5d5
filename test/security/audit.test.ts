import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { accessOf } from '../../src/contract/access.ts'
import { findAuditChain, readAuditEvents } from '../../src/storage/audit/audit.ts'
import type { AuditEventRow } from '../../src/storage/audit/tables.ts'
import { verifyChain } from '../../src/storage/audit/verify.ts'
import { shiftedClock, startTestApp } from '../helpers/app.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'

const chains = createScriptedChains()
const clock = shiftedClock()
const service = await startTestApp({ chains, clock })
const { db } = service.database
const { call, createTenant, send } = service
const [acme, other] = [await createTenant(), await createTenant()]

const all = () => Array.fromAsync(readAuditEvents(db, { after: 0 }))
const eventsOf = async (operation: string) =>
  (await all()).filter((event) => event.operation === operation)
const detailOf = (event: AuditEventRow | undefined) => JSON.parse(event?.detail ?? 'null')

test('a change is recorded with actor, action, address and result', async () => {
  const made = await call(acme.member, 'c/RegisterWallet', { name: 'Till' })
  expect(made.status).toBe(200)
  await expect.poll(() => eventsOf('RegisterWallet')).toHaveLength(1)
  const [event] = await eventsOf('RegisterWallet')
  expect(event).toMatchObject({
    actor_type: 'ACTOR_TYPE_CREDENTIAL',
    role: 'ROLE_MEMBER',
    principal_organization_id: acme.organization_id,
    organization_id: acme.organization_id,
    service: 'c',
    result: 'AUDIT_RESULT_SUCCEEDED',
    reason: null,
  })
  expect(detailOf(event)).toEqual({
    client: '127.0.0.1',
    target: { name: 'Till', confirmation: 10, wallet_id: made.json.wallet_id },
  })
})

test('a change that fails is recorded with its reason, and a read is not recorded', async () => {
  const wallet_id = '00000000-0000-7000-8000-000000000000'
  expect((await call(acme.member, 'c/RenameWallet', { wallet_id, name: 'x' })).status).toBe(404)
  expect((await call(acme.member, 'c/ListWallets', {})).status).toBe(200)
  await expect.poll(() => eventsOf('RenameWallet')).toHaveLength(1)
  expect(await eventsOf('RenameWallet')).toMatchObject([
    { result: 'AUDIT_RESULT_FAILED', reason: 'WALLET_NOT_FOUND' },
  ])
  expect((await all()).filter(({ operation: name }) => accessOf({ name }) === 'read')).toEqual([])
})

test('a read that shows a secret is recorded', async () => {
  const webhook_id = '00000000-0000-7000-8000-000000000000'
  for (const name of ['GetWebhookSigningSecret', 'ListWebhookHeaders']) {
    await call(acme.member, `c/${name}`, { webhook_id })
    await expect.poll(() => eventsOf(name)).toHaveLength(1)
  }
})

test('an answer that is replayed is recorded before it shows its secret again', async () => {
  const key = { 'idempotency-key': crypto.randomUUID() }
  const body = { organization_id: acme.organization_id, name: 'replayed' }
  const create = () => call(acme.admin, 'admin/CreateCredential', body, key)
  const first = await create()
  const { rows: known } = await sql`select event_id from audit_pending
    union select event_id from audit_event`.execute(db)
  const again = await create()
  expect([again.status, again.text]).toEqual([200, first.text])
  // Without waiting: the event is stored when the answer arrives.
  const { rows } = await sql<AuditEventRow>`
    select event_id, operation, result, reason, detail from audit_pending
    union all select event_id, operation, result, reason, detail from audit_event`.execute(db)
  const ids = new Set((known as { event_id: string }[]).map(({ event_id }) => event_id))
  const added = rows.filter(({ event_id }) => !ids.has(event_id))
  expect(added).toMatchObject([
    { operation: 'CreateCredential', result: 'AUDIT_RESULT_SUCCEEDED', reason: 'REPLAYED' },
  ])
  expect(detailOf(added[0])).toMatchObject({
    client: '127.0.0.1',
    target: { name: 'replayed', credential_id: first.json.credential.credential_id },
  })
  expect(added[0]!.detail).not.toContain(first.json.credential.api_secret)
})

test('an event is stored before its change, so that no crash loses it', async () => {
  // The table is locked: a change whose event cannot be stored does not happen.
  const { promise: locked, resolve: hold } = Promise.withResolvers<void>()
  const { promise: done, resolve: release } = Promise.withResolvers<void>()
  const locking = db.transaction().execute(async (trx) => {
    await sql`lock table audit_pending in exclusive mode`.execute(trx)
    hold()
    await done
  })
  await locked
  const calling = call(acme.member, 'c/RegisterWallet', { name: 'Waits' })
  await new Promise((resolve) => setTimeout(resolve, 300))
  const { rows } = await sql`select from wallet where name = 'Waits'`.execute(db)
  expect(rows).toHaveLength(0)
  release()
  await locking
  expect((await calling).status).toBe(200)
})

test('refusals and failed authentications are counted by minute, and name no guess', async () => {
  clock.shift(60_000 - (clock.now() % 60_000))
  for (let count = 0; count < 3; count++)
    expect((await call(acme.member, 'admin/ListOrganizations', {})).status).toBe(403)
  const guess = { api_key: 'plk_a_guess_that_must_not_be_kept', api_secret: 'x' }
  for (let count = 0; count < 4; count++)
    expect((await call(guess, 'c/ListWallets', {})).status).toBe(401)
  expect((await send('/v1/c/RegisterWallet', { body: '' })).status).toBe(401)
  clock.shift(60_000)
  await expect.poll(() => eventsOf('Authenticate')).toHaveLength(1)
  expect(await eventsOf('Authenticate')).toMatchObject([
    {
      actor_type: 'ACTOR_TYPE_UNKNOWN',
      organization_id: null,
      result: 'AUDIT_RESULT_REFUSED',
      reason: 'UNAUTHENTICATED',
      event_count: 5,
    },
  ])
  expect(detailOf((await eventsOf('Authenticate'))[0])).toEqual({
    client: '127.0.0.1',
    target: {},
  })
  expect(await eventsOf('ListOrganizations')).toMatchObject([
    {
      organization_id: acme.organization_id,
      result: 'AUDIT_RESULT_REFUSED',
      reason: 'PERMISSION_DENIED',
      event_count: 3,
    },
  ])
})

test('an organization lists its own events only, an administrator those of all', async () => {
  expect((await call(other.member, 'c/RegisterWallet', { name: 'Other' })).status).toBe(200)
  const limits = { per_hour_limit: -1, per_day_limit: -1, per_month_limit: -1 }
  const set = { organization_id: acme.organization_id, per_second_limit: 900, ...limits }
  expect((await call(other.admin, 'admin/SetRateLimit', set)).status).toBe(200)
  await expect.poll(() => eventsOf('SetRateLimit')).toHaveLength(1)
  const list = async (pair: typeof acme.member, filter: object = {}) =>
    (await call(pair, 'admin/ListAuditEvents', { page_size: 100, ...filter })).json.audit_events
  const mine = await list(acme.member)
  expect(new Set(mine.map((event: AuditEventRow) => event.organization_id))).toEqual(
    new Set([acme.organization_id]),
  )
  // What an administrator did to it is there, but not from where and by which key.
  const change = mine.find((event: AuditEventRow) => event.operation === 'SetRateLimit')
  expect(change).toMatchObject({ role: 'ROLE_ADMIN', client: null, credential_id: null })
  expect(change.target).toMatchObject({ per_second_limit: 900 })
  expect(await list(other.admin)).toHaveLength((await all()).length)
  const named = { organization_id: acme.organization_id }
  expect(await list(other.admin, named)).toHaveLength(mine.length)
  const foreign = await call(other.member, 'admin/ListAuditEvents', named)
  const unknown = await call(other.member, 'admin/ListAuditEvents', {
    organization_id: '00000000-0000-7000-8000-000000000000',
  })
  expect([foreign.status, foreign.json.detail]).toEqual([unknown.status, unknown.json.detail])
  expect(foreign.status).toBe(404)
})

test('events are paged and filtered', async () => {
  const walk = async (filter: object, page_size: number) => {
    const found: AuditEventRow[] = []
    for (let page_token = ''; ; ) {
      const body = { ...filter, page_size, ...(page_token && { page_token }) }
      const { json } = await call(other.admin, 'admin/ListAuditEvents', body)
      found.push(...json.audit_events)
      page_token = json.pagination.next_page_token
      if (!page_token) return found.map(({ sequence }) => sequence)
    }
  }
  const stored = (await all()).toReversed()
  const sequences = (events: AuditEventRow[]) => events.map(({ sequence }) => sequence).sort()
  expect((await walk({}, 2)).sort()).toEqual(sequences(stored))
  for (const filter of [
    { operation: 'RegisterWallet' },
    { result: 'AUDIT_RESULT_REFUSED' },
    { credential_id: stored.find((event) => event.credential_id)!.credential_id },
    { credential_id: 'no id' },
  ])
    expect((await walk(filter, 1)).sort()).toEqual(
      sequences(
        stored.filter((event) =>
          Object.entries(filter).every(([name, value]) => event[name as 'operation'] === value),
        ),
      ),
    )
  const end_time = Math.floor(Date.now() / 1000) - 3_600
  expect(await walk({ end_time }, 10)).toEqual([])
})

test('no secret, key or signature is in the log, and its chain is whole', async () => {
  const created = await call(acme.admin, 'admin/CreateCredential', {
    organization_id: acme.organization_id,
    name: 'backend',
  })
  const { api_key, api_secret } = created.json.credential
  const hook = { webhook_endpoint: 'https://example.org/hook/receiver-token?key=receiver-token' }
  await call(acme.member, 'c/RegisterWebhook', hook)
  const header = { header_key: 'authorization', header_value: 'Bearer receiver-token' }
  await call(acme.member, 'c/RegisterWebhookHeader', header)
  expect((await call(acme.member, 'admin/DeleteCredential', { api_key, api_secret })).status).toBe(
    200,
  )
  await expect.poll(() => eventsOf('DeleteCredential')).toHaveLength(1)
  const text = JSON.stringify((await all()).map(({ detail }) => detail))
  const secrets = [acme, other].flatMap(({ member, admin }) => [
    ...[member.api_key, member.api_secret, admin.api_key, admin.api_secret],
  ])
  for (const secret of [api_key, api_secret, 'receiver-token', 'plk_a_guess', ...secrets])
    expect(text).not.toContain(secret)
  const chain = (await findAuditChain(db))!
  const verified = await verifyChain(chain, readAuditEvents(db, { after: chain.anchor_sequence }))
  expect(verified.broken).toBeUndefined()
})

test('an organization sees what an administrator of the installation does to its keys', async () => {
  const { organization_id } = acme
  const make = async () => {
    const made = await call(other.admin, 'admin/CreateCredential', { organization_id, name: 'key' })
    return made.json.credential
  }
  const [updated, rotated, revoked, leaked, deleted] = await Promise.all(
    Array.from({ length: 5 }, make),
  )
  const unknown = { credential_id: '00000000-0000-7000-8000-000000000000' }
  const overlap = { overlap_seconds: 0 }
  const key = { 'idempotency-key': crypto.randomUUID() }
  const rotate = { credential_id: rotated.credential_id, ...overlap }
  const past = { credential_id: updated.credential_id, expire_time: '2001-01-01T00:00:00Z' }
  const calls: [string, object, number, Record<string, string>?][] = [
    ['UpdateCredential', { credential_id: updated.credential_id, name: 'other' }, 200],
    ['UpdateCredential', past, 400],
    ['UpdateCredential', { ...unknown, name: 'other' }, 404],
    ['RotateCredential', rotate, 200, key],
    ['RotateCredential', rotate, 200, key],
    ['RevokeCredential', { credential_id: revoked.credential_id }, 200],
    ['RevokeCredential', { api_key: leaked.api_key }, 200],
    ['DeleteCredential', { api_key: deleted.api_key, api_secret: 'wrong' }, 404],
    ['DeleteCredential', { api_key: deleted.api_key, api_secret: deleted.api_secret }, 200],
  ]
  // An owner of another organization finds none of them, and leaves no trace where they are.
  const owner = (
    await call(other.admin, 'admin/CreateCredential', {
      ...{ organization_id: other.organization_id, role: 'ROLE_OWNER' },
    })
  ).json.credential
  for (const [name, body] of [calls[0]!, calls[5]!, calls[6]!, calls[8]!])
    expect((await call(owner, `admin/${name}`, body)).status, name).toBe(404)
  for (const [name, body, status, headers = {}] of calls)
    expect((await call(other.admin, `admin/${name}`, body, headers)).status, name).toBe(status)
  const made = await call(other.admin, 'admin/CreateOrganization', { name: 'New', domain: 'new' })
  await expect.poll(() => eventsOf('CreateOrganization')).toHaveLength(1)
  expect(await eventsOf('CreateOrganization')).toMatchObject([
    { organization_id: made.json.organization.organization_id },
  ])
  const names = new Set(calls.map(([name]) => name))
  const filter = { page_size: 100 }
  const { json } = await call(acme.member, 'admin/ListAuditEvents', filter)
  const seen = json.audit_events
    .filter(({ operation, role }: AuditEventRow) => names.has(operation) && role !== 'ROLE_MEMBER')
    .map(({ operation, reason, target, credential_id }: AuditEventRow & { target: object }) => {
      expect(credential_id).toBeNull()
      const at = (target as { credential_id?: string }).credential_id
      return `${operation} ${at} ${reason}`
    })
  expect(seen.toSorted()).toEqual(
    [
      `UpdateCredential ${updated.credential_id} null`,
      `UpdateCredential ${updated.credential_id} INVALID_REQUEST`,
      `RotateCredential ${rotated.credential_id} null`,
      `RotateCredential ${rotated.credential_id} REPLAYED`,
      `RevokeCredential ${revoked.credential_id} null`,
      `RevokeCredential ${leaked.credential_id} null`,
      `DeleteCredential ${deleted.credential_id} CREDENTIAL_NOT_FOUND`,
      `DeleteCredential ${deleted.credential_id} null`,
    ].toSorted(),
  )
})

test('a row that is changed or removed in the database shows at its place', async () => {
  const verify = async () => {
    const chain = (await findAuditChain(db))!
    return (await verifyChain(chain, readAuditEvents(db, { after: 0 }))).broken
  }
  await sql`update audit_event set result = 'AUDIT_RESULT_REFUSED' where sequence = 3`.execute(db)
  expect(await verify()).toMatchObject({ sequence: 3 })
  await sql`delete from audit_event where sequence = 2`.execute(db)
  expect(await verify()).toEqual({ sequence: 2, problem: 'the event is missing' })
})
