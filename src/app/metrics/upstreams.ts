import { Gauge, type Registry } from 'prom-client'
import type { NodeStatus } from '../../chains/nodes/status.ts'

/** The nodes of one network, of any family. */
export type NetworkNodes = { chain: string; network: string; upstreams: readonly NodeStatus[] }

const labelNames = ['chain', 'network', 'upstream']

/** Shows every node with the same metrics, whatever its family. They are read when they are collected. */
export function registerUpstreamMetrics(
  registry: Registry,
  networks: () => Iterable<NetworkNodes>,
): void {
  const show = (name: string, help: string, read: (node: NodeStatus) => number | null) => {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset()
        for (const { chain, network, upstreams } of networks())
          for (const node of upstreams) {
            const value = read(node)
            if (value !== null) this.set({ chain, network, upstream: node.name }, value)
          }
      },
    })
  }
  show(
    'portolan_upstream_up',
    '1 while calls go to the node; absent while its network is not used.',
    ({ state }) => (state === 'idle' ? null : state === 'healthy' || state === 'degraded' ? 1 : 0),
  )
  show('portolan_upstream_head', 'Last block of the node.', ({ head }) => head)
  show('portolan_upstream_lag', 'Blocks that the node is behind.', ({ lag }) => lag)
  show('portolan_upstream_error_rate', 'Share of calls that failed.', (node) => node.error_rate)
  show('portolan_upstream_requests', 'Calls sent to the node.', ({ requests }) => requests)
  show('portolan_upstream_breaker', '0 closed, 1 half open, 2 open.', ({ breaker }) =>
    ['closed', 'half_open', 'open'].indexOf(breaker),
  )
  show(
    'portolan_upstream_latency_p50_seconds',
    'Median time of the last calls.',
    ({ latency_ms }) => latency_ms && latency_ms.p50 / 1000,
  )
  show(
    'portolan_upstream_latency_p95_seconds',
    '95 % of the last calls took no longer.',
    ({ latency_ms }) => latency_ms && latency_ms.p95 / 1000,
  )
}
