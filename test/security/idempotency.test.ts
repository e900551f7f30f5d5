import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createClient } from '../../client/src/index.ts'
import { catalogue } from '../../src/contract/operations/catalogue.ts'
import { deleteExpiredIdempotencyKeys } from '../../src/storage/access/idempotency-keys.ts'
import { type Answer, shiftedClock, startTestApp } from '../helpers/app.ts'
import { freshDatabase } from '../helpers/database.ts'
import { createRandom } from '../helpers/random.ts'
import { createScriptedChains } from '../helpers/scripted-chains.ts'
import { end, startService } from './replay.ts'

const clock = shiftedClock()
const chains = createScriptedChains()
const service = await startTestApp({ clock, chains })
const twin = await startTestApp({ beside: service, clock, chains })
const tenant = await service.createTenant()
const { pool } = service.database

const create = (key: string, name = key, on = service): Promise<Answer> =>
  on.call(
    tenant.admin,
    'admin/CreateCredential',
    { organization_id: tenant.organization_id, name },
    { 'idempotency-key': key },
  )

const countNamed = async (name: string): Promise<number> =>
  (await pool.query('select count(*)::int as count from credential where name = $1', [name]))
    .rows[0].count

describe('an idempotency key', () => {
  it('gives the same answer again and creates once', async () => {
    const key = randomUUID()
    const first = await create(key)
    const second = await create(key, key, twin)
    expect([first.status, second.status]).toEqual([200, 200])
    expect(second.text).toBe(first.text)
    expect(first.headers['idempotency-replayed']).toBeUndefined()
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(await countNamed(key)).toBe(1)
  })

  it('creates once when 40 copies arrive together at two services', async () => {
    const key = randomUUID()
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, at) => create(key, key, at % 2 ? service : twin)),
    )
    expect(await countNamed(key)).toBe(1)
    const texts = new Set(answers.filter(({ status }) => status === 200).map(({ text }) => text))
    expect(texts.size).toBe(1)
    for (const { status, json, headers } of answers.filter(({ status }) => status !== 200)) {
      expect([status, json.reason]).toEqual([409, 'IDEMPOTENCY_KEY_IN_USE'])
      expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    }
  })

  it('is refused for another body or another operation', async () => {
    const key = randomUUID()
    await create(key)
    const other = await create(key, 'another name')
    expect([other.status, other.json.reason]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED'])
    const elsewhere = await service.call(
      tenant.admin,
      'c/RegisterWallet',
      { name: 'w' },
      { 'idempotency-key': key },
    )
    expect(elsewhere.json.reason).toBe('IDEMPOTENCY_KEY_REUSED')
  })

  it('belongs to a credential: another one of the organization learns nothing', async () => {
    const key = randomUUID()
    const first = await create(key)
    const other = await service.createPair(tenant.organization_id, 'ROLE_ADMIN')
    const answer = await service.call(
      other,
      'admin/CreateCredential',
      { organization_id: tenant.organization_id, name: key },
      { 'idempotency-key': key },
    )
    expect(answer.status).toBe(200)
    expect(answer.json.credential.api_key).not.toBe(first.json.credential.api_key)
  })

  it('is free again after a failure', async () => {
    const key = randomUUID()
    const call = (domain: string) =>
      service.call(
        tenant.admin,
        'admin/CreateOrganization',
        { name: 'n', domain },
        { 'idempotency-key': key },
      )
    expect((await call(tenant.domain)).json.reason).toBe('DOMAIN_TAKEN')
    expect((await call(`d-${key}`)).status).toBe(200)
  })

  it('must be visible ASCII of at most 255 characters', async () => {
    for (const key of ['x'.repeat(256), 'ä']) {
      const answer = await create(key, 'never')
      expect([answer.status, answer.json.errors?.[0].field]).toEqual([400, 'idempotency-key'])
    }
    expect((await create('x'.repeat(255), randomUUID())).status).toBe(200)
  })

  it('is not looked at by operations that create nothing', async () => {
    const headers = { 'idempotency-key': 'x'.repeat(300) }
    const answer = await service.call(tenant.admin, 'c/ListWallets', {}, headers)
    expect([answer.status, answer.headers['idempotency-replayed']]).toEqual([200, undefined])
  })

  it('holds for wallets, webhooks and addresses of a chain', async () => {
    const call = (operation: string, body: object, key: string) =>
      service.call(tenant.member, `c/${operation}`, body, { 'idempotency-key': key })
    const [one, two] = [randomUUID(), randomUUID()]
    const wallet = await call('RegisterWallet', { name: one }, one)
    expect((await call('RegisterWallet', { name: one }, one)).text).toBe(wallet.text)
    const hook = { webhook_endpoint: 'https://example.com/hook', confirmation: 1 }
    const webhook = await call('RegisterWebhook', hook, two)
    expect(webhook.status).toBe(200)
    expect((await call('RegisterWebhook', hook, two)).text).toBe(webhook.text)
    const { rows } = await pool.query(
      'select (select count(*) from wallet)::int as wallets, (select count(*) from webhook)::int as webhooks',
    )
    expect(rows[0]).toEqual({ wallets: 1, webhooks: 1 })
  })

  it('keeps answers sealed: no secret of one can be read from the database', async () => {
    const key = randomUUID()
    const { json } = await create(key)
    const { rows } = await pool.query(
      `select encode(answer_sealed, 'escape') as text from idempotency_key`,
    )
    expect(rows.length).toBeGreaterThan(0)
    for (const { text } of rows) expect(text).not.toContain(json.credential.api_secret)
  })

  it('that a crash left without an answer is carried out by a later repetition', async () => {
    const key = randomUUID()
    await create(key)
    // As a process leaves it that dies before its transaction commits.
    await pool.query(
      `update idempotency_key set answer_sealed = null, claim_until = $1
      where expire_time = (select max(expire_time) from idempotency_key)`,
      [new Date(clock.now() + 5_000)],
    )
    await pool.query('delete from credential where name = $1', [key])
    const early = await create(key)
    expect([early.json.reason, early.headers['retry-after']]).toEqual([
      'IDEMPOTENCY_KEY_IN_USE',
      '5',
    ])
    clock.shift(6_000)
    expect((await create(key)).status).toBe(200)
    expect(await countNamed(key)).toBe(1)
  })

  it('is forgotten after 24 hours', async () => {
    const key = randomUUID()
    await create(key)
    clock.shift(24 * 3_600_000 + 1_000)
    await deleteExpiredIdempotencyKeys(service.database.db, new Date(clock.now()), 10_000)
    const { rows } = await pool.query('select count(*)::int as count from idempotency_key')
    expect(rows[0].count).toBe(0)
    const again = await create(key)
    expect(again.headers['idempotency-replayed']).toBeUndefined()
    expect(await countNamed(key)).toBe(2)
  })
})

it('operations that create are marked, and only those', () => {
  const marked = new Set(catalogue.filter(({ row }) => row.creates).map(({ name }) => name))
  const creating = catalogue
    .map(({ name }) => name)
    .filter((name) => /^(Batch)?(Create|Register)/.test(name))
    // It stores nothing: a token is good for one minute, and a retry may have another one.
    .filter((name) => name !== 'CreateStreamToken')
  expect([...marked].sort()).toEqual(
    [...new Set([...creating, 'RotateCredential', 'SendTestWebhook'])].sort(),
  )
})

/** The campaign sets 10. */
const kills = Number(process.env.SECURITY_KILLS ?? 1)

it('kills of the service never let a retry create twice', {
  timeout: 180_000 + kills * 20_000,
}, async () => {
  const database = await freshDatabase()
  const random = createRandom(11)
  const { host, user, database: name } = database.connection
  const url = `postgres:///${name}?host=${encodeURIComponent(host)}&user=${user}`
  const beside = await startTestApp({ database })
  const { admin, organization_id } = await beside.createTenant()
  let running = await startService(url, beside.master_key)
  const open = new Set<string>()
  const answers = new Map<string, string>()
  const attempt = async (key: string) => {
    open.add(key)
    const client = createClient({ base_url: running.url, ...admin, retries: 0 })
    const request = { organization_id, name: key }
    const answer = await client.admin
      .CreateCredential(request, { idempotency_key: key })
      .catch(() => undefined)
    if (!answer) return await delay(200)
    open.delete(key)
    answers.set(key, answer.credential.credential_id)
    await delay(10)
  }
  let writing = true
  const write = async () => {
    // An interrupted key is retried between new ones.
    while (writing) await attempt((random() < 0.3 && [...open][0]) || randomUUID())
  }
  const writers = [1, 2, 3, 4].map(write)
  for (let kill = 0; kill < kills; kill++) {
    await delay(200 + random() * 600)
    await end(running, 'SIGKILL')
    running = await startService(url, beside.master_key)
  }
  writing = false
  await Promise.all(writers)
  const deadline = Date.now() + 60_000
  while (open.size > 0 && Date.now() < deadline) {
    for (const key of open) await attempt(key)
    await delay(500)
  }
  await end(running, 'SIGTERM')
  expect(open.size).toBe(0)
  const { rows } = await database.pool.query<{ name: string; ids: string[] }>(
    `select name, array_agg(credential_id::text) as ids from credential where name <> 'test' group by name`,
  )
  expect(rows.filter(({ ids }) => ids.length > 1)).toEqual([])
  expect(new Map(rows.map(({ name, ids }) => [name, ids[0]]))).toEqual(answers)
  expect(answers.size).toBeGreaterThan(10)
})
