import { useEffect, useMemo } from 'preact/hooks'
import { useAccount } from '../../app/context.ts'
import { Chart } from '../../components/chart.tsx'
import { Panel, Skeleton, Stat } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { formatDuration, formatMeasure, formatPercent } from '../../lib/format.ts'
import { metricSeries } from '../../lib/metrics.ts'
import { useResource } from '../../lib/use-resource.ts'

/** Requests, errors, cache, deliveries and latency over time, for administrators. */
export function Metrics({ hours }: { hours: number }) {
  const { client } = useAccount()
  const loaded = useResource(
    (signal) => {
      const start_time = Math.floor(Date.now() / 1000) - hours * 3_600
      return client.admin.ListMetrics({ start_time }, { signal })
    },
    [hours],
  )
  // The service adds one point per minute.
  useEffect(() => {
    const timer = setInterval(loaded.reload, 60_000)
    return () => clearInterval(timer)
  }, [loaded.reload])
  const shown = useMemo(
    () => loaded.data && metricSeries(loaded.data.points, loaded.data.resolution_seconds),
    [loaded.data],
  )
  if (!shown) {
    if (loaded.loading) return <Skeleton lines={4} />
    return <Problem error={loaded.error} onRetry={loaded.reload} />
  }
  const { times, latest } = shown
  return (
    <>
      <div class="stats">
        <Stat label="Requests" value={formatMeasure(latest.requests)} note="per second" />
        <Stat
          label="Errors"
          value={formatPercent(latest.errorRate)}
          note="of requests"
          tone={(latest.errorRate ?? 0) > 0.05 ? 'bad' : undefined}
        />
        <Stat label="Latency p50" value={formatDuration(latest.p50)} />
        <Stat label="Latency p99" value={formatDuration(latest.p99)} />
        <Stat label="Cache hits" value={formatPercent(latest.hitRate)} note="of gateway reads" />
        <Stat
          label="Deliveries"
          value={formatMeasure(latest.deliveries)}
          note="per second"
          tone={(latest.failedDeliveries ?? 0) > 0 ? 'warn' : undefined}
        />
      </div>
      <div class="charts">
        <Panel>
          <Chart
            title="Requests per second"
            times={times}
            series={[
              { title: 'all', values: shown.requests },
              { title: 'errors', values: shown.errors },
              { title: 'refused', values: shown.refused },
            ]}
          />
        </Panel>
        <Panel>
          <Chart
            title="Latency"
            unit="ms"
            times={times}
            series={[
              { title: 'p50', values: shown.p50 },
              { title: 'p99', values: shown.p99 },
            ]}
          />
        </Panel>
        <Panel>
          <Chart
            title="Deliveries per minute"
            times={times}
            series={[
              { title: 'sent', values: shown.deliveries },
              { title: 'failed', values: shown.failedDeliveries },
            ]}
          />
        </Panel>
        <Panel>
          <Chart
            title="Gateway calls per second"
            times={times}
            series={[
              { title: 'calls', values: shown.gateway },
              { title: 'cache hits', values: shown.hits },
            ]}
          />
        </Panel>
      </div>
    </>
  )
}
