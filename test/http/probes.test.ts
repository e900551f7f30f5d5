import { describe, expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'
import { leaksIn, noteSecret } from '../helpers/log-capture.ts'
import { operations } from './sample-requests.ts'

const upstreamKey = 'a-key-in-the-path-of-an-upstream'
noteSecret(upstreamKey)
const upstreams = [{ url: `http://127.0.0.1:9/v3/${upstreamKey}` }]
const service = await startTestApp({
  config: {
    chains: { c: { networks: { mainnet: { upstreams }, ropsten: { upstreams } } } },
  } as never,
})
const tenant = await service.createTenant()
const get = (path: string) => service.send(path, { method: 'GET' })

/** The series of the metrics that requests feed. */
const series = async (): Promise<Set<string>> => {
  const { text } = await service.admin('/metrics')
  return new Set(
    text
      .split('\n')
      .filter((line) => line.startsWith('portolan_http'))
      .map((line) => line.slice(0, line.lastIndexOf(' '))),
  )
}

describe('the probes', () => {
  it('need no credential and must not be kept', async () => {
    for (const path of ['/health', '/ready', '/ready/gateway', '/status']) {
      const { status, headers } = await get(path)
      expect([path, status, headers['cache-control']]).toEqual([path, 200, 'no-store'])
    }
  })

  it('/health says that the process lives', async () => {
    expect((await get('/health')).json).toEqual({ status: 'ok' })
  })

  it('/ready says that requests can be served', async () => {
    expect((await get('/ready')).json).toMatchObject({ status: 'ready' })
  })

  it('/ready names a network that is not tracked, and says nothing of the reason', async () => {
    await expect
      .poll(async () => (await get('/ready')).json)
      .toEqual({
        status: 'ready',
        degraded: [{ chain: 'c', network: 'mainnet', health: 'failing' }],
      })
    const { json } = await service.admin('/status')
    expect(json.chains.c.tracking.problem).not.toBe('')
  })

  it('/ready/gateway says that the gateway can serve', async () => {
    expect((await get('/ready/gateway')).json).toEqual({ status: 'ready' })
  })

  it('/status shows clients the chains, and no internal details', async () => {
    const { json } = await get('/status')
    expect(json).toEqual({
      status: expect.stringMatching(/^(ok|degraded)$/),
      version: '0.0.0-test',
      chains: {
        c: { kind: 'evm', default_network: 'mainnet', networks: ['mainnet', 'ropsten'] },
      },
    })
  })

  it.each(['/metrics', '/debug/cpu-profile', '/debug/heap-profile'])(
    'the public port has no %s',
    async (path) => {
      for (const method of ['GET', 'POST'])
        expect((await service.send(path, { method })).json.reason).toBe('ROUTE_NOT_FOUND')
    },
  )
})

describe('the routes of the operator', () => {
  it('/status shows version, database, limits and chains, and nothing of any organization', async () => {
    const { json, text, headers } = await service.admin('/status')
    expect(headers['content-type']).toBe('application/json')
    expect(json).toMatchObject({
      version: '0.0.0-test',
      database: { mode: 'server', reachable: true },
      limits: { mode: 'memory', stored: true },
    })
    expect(json.start_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(json.uptime_seconds).toBeGreaterThanOrEqual(0)
    expect(json.database.server_version).toMatch(/^\d+\./)
    expect(json.chains.c).toMatchObject({ kind: 'evm', default_network: 'mainnet' })
    expect(text).not.toContain(tenant.organization_id)
    expect(text).not.toContain(service.database.connection.host)
    expect(leaksIn(text)).toEqual([])
  })

  it('/metrics counts requests by route, operation and status', async () => {
    const count = async () => {
      const { text } = await service.admin('/metrics')
      const line =
        /^portolan_http_requests_total\{route="operations",service="admin",operation="ListRateLimits",status="200"\} (\d+)$/m
      return Number(line.exec(text)?.[1] ?? 0)
    }
    const before = await count()
    const { organization_id } = tenant
    for (let call = 0; call < 3; call++)
      await service.call(tenant.member, 'admin/ListRateLimits', { organization_id })
    expect(await count()).toBe(before + 3)
    const { text, headers } = await service.admin('/metrics')
    expect(headers['content-type']).toContain('text/plain')
    expect(text).toContain('portolan_info{version="0.0.0-test"} 1')
    expect(text).toContain('portolan_database_connections{pool="requests",state="busy"}')
    expect(text).toContain('process_cpu_seconds_total')
    expect(leaksIn(text)).toEqual([])
  })
})

describe('the metrics', () => {
  it('get no new series from names that callers invent', async () => {
    const paths = (round: number) => [
      `/${round}`,
      `/v1/admin/Invented${round}`,
      `/v1/invented${round}/GetBlock`,
      `/v1/q/GetBlock/${round}`,
      `/v1/q/GetBlock?x=${round}`,
      `/docs/errors/INVENTED_${round}`,
      `/docs/assets/invented-${round}.js`,
      `/health/${round}`,
      `/v1/${'a'.repeat(round % 50)}`,
      `/v1/__proto__/${round}`,
    ]
    const methods = ['GET', 'POST', 'PURGE', 'PROPFIND']
    const storm = async (from: number, to: number) => {
      for (let round = from; round < to; round++)
        await Promise.all(
          paths(round).flatMap((path) =>
            methods.map((method) =>
              service.send(path, { method, headers: { 'x-request-id': `r${round}` } }),
            ),
          ),
        )
    }
    await storm(0, 3)
    await service.admin('/metrics')
    const before = await series()
    await storm(3, 30)
    expect([...(await series()).difference(before)]).toEqual([])
    expect(before.size).toBeLessThan(300)
  })

  it('have a bounded number of series however the catalogue is called', async () => {
    for (const [name] of operations) await service.send(`/v1/${name}`)
    const labels = [...(await series())].filter((name) => name.startsWith('portolan_http_requests'))
    expect(labels.length).toBeLessThan(operations.length * 4)
  })
})
