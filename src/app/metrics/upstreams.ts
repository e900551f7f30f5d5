import type { Registry } from 'prom-client'
import type { NodeStatus } from '../../chains/nodes/status.ts'
import type { NetworkNodes } from '../../domain/context.ts'
import { show, showHistogram } from './show.ts'

const labelNames = ['chain', 'network', 'upstream']

/** Exports every node with the same metrics, whatever its family. They are read on each scrape. */
export function registerUpstreamMetrics(
  registry: Registry,
  networks: () => Iterable<NetworkNodes>,
): void {
  function* nodes() {
    for (const { chain, network, upstreams } of networks())
      for (const node of upstreams) yield { labels: { chain, network, upstream: node.name }, node }
  }
  const each = (
    kind: 'counter' | 'gauge',
    name: string,
    help: string,
    read: (node: NodeStatus) => number | null,
  ) =>
    show(registry, kind, { name, help, labelNames }, function* () {
      for (const { labels, node } of nodes()) {
        const value = read(node)
        // No series instead of a zero that would look like a measurement.
        if (value !== null) yield { labels, value }
      }
    })
  each(
    'gauge',
    'portolan_upstream_up',
    '1 while calls go to the node; absent while its network is not used.',
    ({ state }) => (state === 'idle' ? null : state === 'healthy' || state === 'degraded' ? 1 : 0),
  )
  each('gauge', 'portolan_upstream_head', 'Last block of the node.', ({ head }) => head)
  each('gauge', 'portolan_upstream_lag', 'Blocks that the node is behind.', ({ lag }) => lag)
  each(
    'gauge',
    'portolan_upstream_error_rate',
    'Share of the last calls that failed.',
    ({ error_rate }) => error_rate,
  )
  each(
    'counter',
    'portolan_upstream_requests_total',
    'Calls sent to the node.',
    ({ requests }) => requests,
  )
  each(
    'counter',
    'portolan_upstream_errors_total',
    'Calls to the node that failed.',
    ({ errors }) => errors,
  )
  // As a number: a label with the state would make a new series with each change.
  each('gauge', 'portolan_upstream_breaker', '0 closed, 1 half open, 2 open.', ({ breaker }) =>
    ['closed', 'half_open', 'open'].indexOf(breaker),
  )
  each(
    'gauge',
    'portolan_upstream_latency_p50_seconds',
    'Median time of the last calls.',
    ({ latency_ms }) => latency_ms && latency_ms.p50 / 1000,
  )
  each(
    'gauge',
    'portolan_upstream_latency_p95_seconds',
    '95 % of the last calls took no longer.',
    ({ latency_ms }) => latency_ms && latency_ms.p95 / 1000,
  )
  // The quantiles above are of one process. This histogram can be added up over processes and time.
  showHistogram(
    registry,
    {
      name: 'portolan_upstream_request_seconds',
      help: 'Time of the calls that a node answered.',
      labelNames,
    },
    function* () {
      for (const { labels, node } of nodes()) {
        const counts = node.latencies?.()
        if (counts) yield { labels, counts }
      }
    },
  )
}
