import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/lib/log.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import { openDatabase } from '../../src/storage/pg/database.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { type Answer, startTestApp } from '../helpers/app.ts'
import { copyEmbeddedDataDir } from '../helpers/initialized-data-dir.ts'
import { embeddedBinaries } from '../helpers/postgres.ts'
import { waitFor } from '../helpers/wait-for.ts'

const folder = await mkdtemp(join(tmpdir(), 'portolan-gone-'))
await chmod(folder, 0o711)
const dataDir = join(folder, 'data')
await copyEmbeddedDataDir(dataDir)
const binaries = await embeddedBinaries()
const start = () =>
  startEmbeddedPostgres({ dataDir, binaries, log: silentLog, settings: { fsync: false } })
let server = await start()
afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})
const { connection } = server
const own = openDatabase({ connection, log: silentLog, max: 3 })
afterAll(own.stop)

const service = await startTestApp({ database: { ...own, connection } })
const tenant = await service.createTenant()
const { domain } = tenant

const call = () => service.call(tenant.member, 'admin/GetOrganizationByDomain', { domain })
const create = (name: string) =>
  service.call(tenant.admin, 'admin/CreateOrganization', { name, domain: name })
const probe = async (path: string) => (await service.send(path, { method: 'GET' })).status

/** For two seconds after the start of a database no nonce of before is accepted. */
const isServedAgain = async () => {
  await waitFor('it is ready again', async () => (await probe('/ready')) === 200)
  await waitFor('it is served again', async () => (await call()).status === 200)
}

const expectUnavailable = ({ status, headers, json }: Answer) => {
  expect([status, json.code, json.reason]).toEqual([503, 'UNAVAILABLE', 'DATABASE_UNAVAILABLE'])
  expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1)
  expect(headers['content-type']).toBe('application/problem+json')
}

describe('when the database is gone', () => {
  it('operations answer 503 with Retry-After, and all recovers without a restart', async () => {
    expect((await call()).status).toBe(200)
    for (let round = 0; round < 2; round++) {
      await server.stop()
      const answers = await Promise.all(Array.from({ length: 20 }, call))
      for (const answer of answers) expectUnavailable(answer)
      expectUnavailable(await create(`lost-${round}`))
      const unknown = { ...tenant.member, api_key: 'plk_unknown' }
      // Its MAC shows without the database that it was made up.
      expect((await service.call(unknown, 'q/GetBlock', { block_number: 1 })).status).toBe(401)
      expect([await probe('/health'), await probe('/ready')]).toEqual([200, 503])
      expect([
        (await service.admin('/metrics')).status,
        await probe('/status'),
        await probe('/docs'),
      ]).toEqual([200, 200, 200])
      const status = await service.admin('/status')
      expect(status.json.database.reachable).toBe(false)

      server = await start()
      await isServedAgain()
      expect((await create(`kept-${round}`)).status).toBe(200)
    }
    const { json } = await service.call(tenant.admin, 'admin/ListOrganizations', { page_size: 100 })
    const domains = json.organizations.map((row: { domain: string }) => row.domain)
    expect(domains).toEqual([domain, 'kept-0', 'kept-1'])
  })

  it('bad requests still get their errors where that needs no database', async () => {
    await server.stop()
    expect((await service.send('/v1/q/Nothing')).status).toBe(404)
    expect((await service.send('/v1/q/GetBlock', { method: 'GET' })).status).toBe(405)
    expect((await service.send('/v1/q/GetBlock')).status).toBe(401)
    server = await start()
    await isServedAgain()
  })

  it('the gateway serves known keys, and /ready/gateway answers 200', async () => {
    const node = await startStubNode()
    const upstreams = [{ url: node.url }]
    const gateway = await startTestApp({
      beside: service,
      config: { chains: { c: { networks: { mainnet: { upstreams } } } } as never },
    })
    const ask = async () => {
      const { json } = await gateway.send(`/c/mainnet/v1/${tenant.member.api_key}`, {
        headers: { 'content-type': 'application/json' },
        body: '{"jsonrpc":"2.0","id":1,"method":"net_version"}',
      })
      return json.result
    }
    const probes = async () => {
      const answers = await Promise.all(
        ['/ready', '/ready/gateway'].map((path) => gateway.send(path, { method: 'GET' })),
      )
      return answers.map(({ status }) => status)
    }
    await waitFor('the gateway serves', async () => (await ask()) === '1')
    expect(await probes()).toEqual([200, 200])
    await server.stop()
    expect(await probes()).toEqual([503, 200])
    expect(await ask()).toBe('1')
    server = await start()
    await isServedAgain()
    expect(await probes()).toEqual([200, 200])
  })

  it('a concurrent change of limits by another process applies when the database is back', async () => {
    const tenantOfOthers = await service.createTenant()
    const ask = () =>
      service.call(tenantOfOthers.member, 'admin/ListRateLimits', {
        organization_id: tenantOfOthers.organization_id,
      })
    expect((await ask()).status).toBe(200)
    await server.stop()
    server = await start()
    // Written manually and not announced, as it would be by another service while ours had no connection.
    await own.pool.query('update rate_limit set per_day_limit = 0 where organization_id = $1', [
      tenantOfOthers.organization_id,
    ])
    await waitFor('the limit is known', async () => (await ask()).status === 403)
    await isServedAgain()
  })
})

describe('when connections are cut under load', () => {
  it('some calls answer 503, none fails otherwise, and everything acknowledged is stored', async () => {
    const outcomes: number[] = []
    const acknowledged: string[] = []
    let over = false
    let made = 0
    const client = async () => {
      while (!over) {
        const name = `cut-${made++}`
        const { status } = await create(name)
        outcomes.push(status)
        if (status === 200) acknowledged.push(name)
      }
    }
    const clients = Array.from({ length: 6 }, client)
    for (let cut = 0; cut < 8; cut++) {
      const goal = outcomes.length + 40
      await waitFor('calls continue', () => outcomes.length >= goal)
      await own.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where pid <> pg_backend_pid() and application_name like 'portolan%'`,
      )
    }
    over = true
    await Promise.all(clients)
    expect(outcomes.filter((status) => status !== 200 && status !== 503)).toEqual([])
    expect(acknowledged.length).toBeGreaterThan(100)
    const { rows } = await own.pool.query<{ count: number }>(
      'select count(*)::int from organization where domain = any($1)',
      [acknowledged],
    )
    expect(rows[0]?.count).toBe(acknowledged.length)
    // Its connections may still be opened again.
    await expect.poll(async () => (await call()).status).toBe(200)
  })

  it('the log reports it without an internal error', () => {
    const lines = service.log.lines()
    expect(lines.some(({ msg }) => msg === 'database unavailable')).toBe(true)
    expect(lines.filter(({ msg }) => msg === 'request failed')).toEqual([])
  })
})
