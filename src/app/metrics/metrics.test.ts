import { describe, expect, it } from 'vitest'
import { catalogue } from '../../contract/operations/catalogue.ts'
import { noFacts } from '../../http/exchange.ts'
import { createRoutes } from '../../http/routes.ts'
import { describeMetrics } from './describe.ts'
import { createMetrics } from './metrics.ts'

const routes = createRoutes({})

const lines = async (metrics: ReturnType<typeof createMetrics>, name: string) =>
  (await metrics.text()).text.split('\n').filter((line) => line.startsWith(name))

const finished = { route: 'operations', status: 200, seconds: 0.002 }

describe('the metrics', () => {
  it('count requests by route, service, operation and status', async () => {
    const metrics = createMetrics('1', routes)
    metrics.finished({ ...finished, path: '/v1/c/GetWallet' })
    metrics.finished({ ...finished, path: '/v1/c/GetWallet' })
    metrics.finished({ ...finished, path: '/v1/c/GetWallet', status: 404 })
    metrics.finished({ ...finished, route: '/health', path: '/health' })
    expect(await lines(metrics, 'portolan_http_requests_total{')).toEqual([
      'portolan_http_requests_total{route="operations",service="c",operation="GetWallet",status="200"} 2',
      'portolan_http_requests_total{route="operations",service="c",operation="GetWallet",status="404"} 1',
      'portolan_http_requests_total{route="/health",service="",operation="",status="200"} 1',
    ])
  })

  it('take no label from a path that is not in the catalogue', async () => {
    const metrics = createMetrics('1', routes)
    const paths = [
      '/v1/x/y',
      '/v1/c/Nothing',
      '/v1/__proto__/toString',
      '/v1',
      '/v1//',
      '/v1/c/getwallet',
    ]
    for (const path of paths) metrics.finished({ ...finished, path, status: 404 })
    expect(await lines(metrics, 'portolan_http_requests_total{')).toEqual([
      `portolan_http_requests_total{route="operations",service="",operation="",status="404"} ${paths.length}`,
    ])
  })

  it('know every operation of the catalogue', async () => {
    const metrics = createMetrics('1', routes)
    for (const { service, name } of catalogue)
      metrics.finished({ ...finished, path: `/v1/${service}/${name}` })
    expect(await lines(metrics, 'portolan_http_requests_total{')).toHaveLength(catalogue.length)
  })

  it('of two services in one process do not mix', async () => {
    const [one, two] = [createMetrics('1', routes), createMetrics('2', routes)]
    one.finished({ ...finished, path: '/v1/c/GetWallet' })
    expect(await lines(two, 'portolan_http_requests_total{')).toEqual([])
    expect(await lines(two, 'portolan_info{')).toEqual(['portolan_info{version="2"} 1'])
  })

  it('show the limiter as it is when they are read', async () => {
    const metrics = createMetrics('1', routes)
    const status = {
      entries: 3,
      mode: 'redis' as const,
      stored: true,
      kept_counts: 0,
      lost_counts: 0,
    }
    let now: Parameters<typeof metrics.watchLimiter>[0] = () => status
    metrics.watchLimiter(() => now())
    expect(await lines(metrics, 'portolan_limiter_shared ')).toEqual(['portolan_limiter_shared 1'])
    now = () => ({ ...status, mode: 'redis_away', entries: 4 })
    expect(await lines(metrics, 'portolan_limiter_shared ')).toEqual(['portolan_limiter_shared 0'])
    expect(await lines(metrics, 'portolan_limiter_entries ')).toEqual([
      'portolan_limiter_entries 4',
    ])
  })

  it('show the progress of the trackers, and nothing while the database does not answer', async () => {
    const metrics = createMetrics('1', routes)
    const tracker = {
      chain: 'c',
      network: 'mainnet',
      state: 'leading' as const,
      block_number: 90,
      head: 100,
      reorganizations: 2,
      forged_blocks: 1,
      refill: { filled: 7, failed: 1 },
      unknown_kinds: { untraced_block: 5 },
      last_error: '',
      last_error_time: null,
      health: 'stalled' as const,
      since: '2026-01-01T00:00:00.000Z',
      problem: 'No node reports its head.',
      gaps: [{ from_block: 11, to_block: 20 }],
    }
    let now: Parameters<typeof metrics.watchTrackers>[0]['status'] = async () => ({
      c: { mainnet: tracker },
    })
    metrics.watchTrackers({ status: () => now(), timings: () => [] })
    const shown = await lines(metrics, 'portolan_tracker_')
    expect(shown).toEqual([
      'portolan_tracker_block{chain="c",network="mainnet"} 90',
      'portolan_tracker_head{chain="c",network="mainnet"} 100',
      'portolan_tracker_leading{chain="c",network="mainnet"} 1',
      'portolan_tracker_failing{chain="c",network="mainnet"} 0',
      'portolan_tracker_stalled{chain="c",network="mainnet"} 1',
      'portolan_tracker_reorganizations_total{chain="c",network="mainnet"} 2',
      'portolan_tracker_forged_blocks_total{chain="c",network="mainnet"} 1',
      'portolan_tracker_gaps{chain="c",network="mainnet"} 1',
      'portolan_tracker_gap_blocks{chain="c",network="mainnet"} 10',
      'portolan_tracker_refilled_blocks_total{chain="c",network="mainnet"} 7',
      'portolan_tracker_unknown_kinds_total{chain="c",network="mainnet",kind="untraced_block"} 5',
    ])
    now = () => Promise.reject(new Error('no database'))
    expect(await lines(metrics, 'portolan_tracker_')).toEqual([])
  })
})

describe('the forms of the metrics', () => {
  const open = 'application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5'

  it('are OpenMetrics where that is asked for, and the text of Prometheus otherwise', async () => {
    const metrics = createMetrics('1', routes)
    metrics.finished({ ...finished, path: '/v1/c/GetWallet' })
    const asked = await metrics.text(open)
    expect(asked.contentType).toMatch(/^application\/openmetrics-text; version=1\.0\.0/)
    expect(asked.text).toContain('# TYPE portolan_http_requests counter\n')
    expect(asked.text).toMatch(/^portolan_http_requests_total\{.*\} 1$/m)
    expect(asked.text).toMatch(/\n# EOF\n$/)
    // The other form is the same before and after.
    for (const accept of [undefined, '*/*', 'text/plain']) {
      const classic = await metrics.text(accept)
      expect(classic.contentType).toMatch(/^text\/plain; version=0\.0\.4/)
      expect(classic.text).toContain('# TYPE portolan_http_requests_total counter\n')
      expect(classic.text).not.toContain('# EOF')
    }
  })

  it('have exemplars in OpenMetrics only', async () => {
    const metrics = createMetrics('1', routes)
    const facts = { ...noFacts('r'), trace_id: 'abc' }
    metrics.finished({ ...finished, path: '/v1/c/GetWallet', facts })
    expect((await metrics.text(open)).text).toMatch(
      /^portolan_http_request_seconds_bucket\{.*le="0\.0025".*\} 1 # \{trace_id="abc"\} 0\.002 \d+(?:\.\d+)?$/m,
    )
    expect((await metrics.text()).text).not.toContain('trace_id')
  })

  it('escape labels', async () => {
    const metrics = createMetrics('1"\\\n', routes)
    expect(await lines(metrics, 'portolan_info{')).toEqual([
      'portolan_info{version="1\\"\\\\\\n"} 1',
    ])
  })
})

it('every metric has a help text that ends as a sentence', () => {
  const own = describeMetrics().filter(({ name }) => name.startsWith('portolan_'))
  expect(own.length).toBeGreaterThan(50)
  expect(own.filter(({ help }) => !help.endsWith('.'))).toEqual([])
  for (const { name, type } of own)
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter'])
})
