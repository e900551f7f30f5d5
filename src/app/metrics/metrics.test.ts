import { describe, expect, it } from 'vitest'
import { catalogue } from '../../contract/operations/catalogue.ts'
import { createRoutes } from '../../http/routes.ts'
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
      health: 'stalled' as const,
      since: '2026-01-01T00:00:00.000Z',
      problem: 'No node reports its head.',
      gaps: [{ from_block: 11, to_block: 20 }],
    }
    let now: Parameters<typeof metrics.watchTrackers>[0] = async () => ({ c: { mainnet: tracker } })
    metrics.watchTrackers(() => now())
    const shown = await lines(metrics, 'portolan_tracker_')
    expect(shown).toEqual([
      'portolan_tracker_block{chain="c",network="mainnet"} 90',
      'portolan_tracker_head{chain="c",network="mainnet"} 100',
      'portolan_tracker_leading{chain="c",network="mainnet"} 1',
      'portolan_tracker_failing{chain="c",network="mainnet"} 0',
      'portolan_tracker_stalled{chain="c",network="mainnet"} 1',
      'portolan_tracker_reorganizations{chain="c",network="mainnet"} 2',
      'portolan_tracker_forged_blocks{chain="c",network="mainnet"} 1',
      'portolan_tracker_gaps{chain="c",network="mainnet"} 1',
      'portolan_tracker_gap_blocks{chain="c",network="mainnet"} 10',
      'portolan_tracker_refilled_blocks{chain="c",network="mainnet"} 7',
      'portolan_tracker_unknown_kinds{chain="c",network="mainnet",kind="untraced_block"} 5',
    ])
    now = () => Promise.reject(new Error('no database'))
    expect(await lines(metrics, 'portolan_tracker_')).toEqual([])
  })
})
