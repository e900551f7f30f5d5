import { expect, test } from 'vitest'
import type { NodeState, NodeStatus } from '../../chains/nodes/status.ts'
import { mergeReports } from './nodes.ts'

const at = { chain: 'c', network: 'mainnet' }
const node = (state: NodeState, head: number | null): NodeStatus => ({
  ...{ name: 'a', transport: 'http', state, reason: state, chain_id: 1, client_version: '' },
  ...{ head, lag: null, latency_ms: null, error_rate: 0, breaker: 'closed' },
  ...{ capabilities: [], requests: 0, errors: 0 },
})
const report = (state: NodeState, head: number | null, hits: number) => ({
  nodes: [{ ...at, upstreams: [node(state, head)] }],
  gateways: [
    {
      ...{ ...at, websocket_count: 1, subscription_count: 2, filter_count: 0 },
      ...{ cache_bytes: 10, cache_hit_count: hits, cache_miss_count: 1 },
    },
  ],
})

test('counts are added up, and a node has the worst state of the processes that use it', () => {
  const reports = [report('idle', null, 0), report('healthy', 7, 3), report('degraded', 6, 4)]
  const merged = mergeReports(reports)
  expect(merged).toEqual(mergeReports(reports.toReversed()))
  expect(merged.nodes).toMatchObject([{ ...at, name: 'a', state: 'degraded', head: '6' }])
  expect(merged.gateways).toEqual([
    {
      ...{ ...at, websocket_count: 3, subscription_count: 6, filter_count: 0 },
      ...{ cache_bytes: 30, cache_hit_count: 7, cache_miss_count: 3 },
    },
  ])
})

test('a process that does not use a node says nothing about it, and the newest head counts', () => {
  const merged = mergeReports([
    report('idle', null, 0),
    report('healthy', 7, 0),
    report('healthy', 8, 0),
  ])
  expect(merged.nodes).toMatchObject([{ state: 'healthy', head: '8' }])
})
