import { useAccount } from '../../app/context.ts'
import { useLiveReload } from '../../app/use-live.ts'
import { Empty, Panel, Skeleton } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { Table } from '../../components/table.tsx'
import { Badge } from '../../components/text.tsx'
import { formatConstant, formatCount, formatDuration, formatPercent } from '../../lib/format.ts'
import { useResource } from '../../lib/use-resource.ts'

const tones: Readonly<Record<string, 'good' | 'warn' | 'bad'>> = {
  starting: 'warn',
  healthy: 'good',
  degraded: 'warn',
  open_circuit: 'bad',
  wrong_chain: 'bad',
  unreachable: 'bad',
}

/** The nodes with their health, and the caches and sockets of the gateway. */
export function Nodes() {
  const { client } = useAccount()
  const loaded = useResource((signal) => client.admin.ListNodes({}, { signal }), [])
  useLiveReload(({ type }) => type === 'node' || type === 'head', loaded.reload, 3_000)
  if (!loaded.data)
    return loaded.loading ? (
      <Skeleton lines={6} />
    ) : (
      <Problem error={loaded.error} onRetry={loaded.reload} />
    )
  const { nodes, gateways } = loaded.data
  return (
    <div class="stack">
      <Panel flush title="Nodes">
        {nodes.length === 0 ? (
          <Empty title="No node is configured." />
        ) : (
          <Table
            label="Nodes"
            rows={nodes}
            keyOf={({ chain, network, name }) => `${chain} ${network} ${name}`}
            columns={[
              { title: 'Node', cell: ({ name }) => <span class="cell-text">{name}</span> },
              { title: 'Network', cell: ({ chain, network }) => `${chain} ${network}` },
              {
                title: 'State',
                cell: ({ state }) => (
                  <Badge tone={tones[state] ?? 'plain'}>{formatConstant(state)}</Badge>
                ),
              },
              { title: 'Head', align: 'end', cell: ({ head }) => formatCount(head) },
              {
                title: 'Lag',
                align: 'end',
                hide: 'narrow',
                cell: ({ lag_blocks }) => formatCount(lag_blocks),
              },
              {
                title: 'Latency',
                align: 'end',
                hide: 'narrow',
                cell: ({ latency_ms }) => formatDuration(latency_ms),
              },
              {
                title: 'Errors',
                align: 'end',
                hide: 'medium',
                cell: ({ error_rate }) => formatPercent(error_rate),
              },
              {
                title: 'Score',
                align: 'end',
                hide: 'medium',
                cell: ({ score }) => (
                  <span title="Latency in milliseconds, raised by errors. Lower is used more.">
                    {formatCount(score)}
                  </span>
                ),
              },
              { title: 'Breaker', hide: 'medium', cell: ({ breaker }) => breaker || '–' },
              {
                title: 'Why',
                hide: 'medium',
                cell: ({ reason }) => <span class="cell-text soft">{reason || '–'}</span>,
              },
            ]}
          />
        )}
      </Panel>
      <Panel flush title="Sockets and cache">
        {gateways.length === 0 ? (
          <Empty title="The gateway serves no network." />
        ) : (
          <Table
            label="Sockets and cache"
            rows={gateways}
            keyOf={({ chain, network }) => `${chain} ${network}`}
            columns={[
              { title: 'Network', cell: ({ chain, network }) => `${chain} ${network}` },
              {
                title: 'WebSockets',
                align: 'end',
                cell: ({ websocket_count }) => formatCount(websocket_count),
              },
              {
                title: 'Subscriptions',
                align: 'end',
                hide: 'narrow',
                cell: ({ subscription_count }) => formatCount(subscription_count),
              },
              {
                title: 'Filters',
                align: 'end',
                hide: 'narrow',
                cell: ({ filter_count }) => formatCount(filter_count),
              },
              {
                title: 'Cache bytes',
                align: 'end',
                hide: 'narrow',
                cell: ({ cache_bytes }) => formatCount(cache_bytes),
              },
              {
                title: 'Hits',
                align: 'end',
                cell: ({ cache_hit_count, cache_miss_count }) => {
                  const all = Number(cache_hit_count) + Number(cache_miss_count)
                  return all > 0 ? formatPercent(Number(cache_hit_count) / all) : '–'
                },
              },
            ]}
          />
        )}
      </Panel>
    </div>
  )
}
