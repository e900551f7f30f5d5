import { useMemo, useState } from 'preact/hooks'
import { useAccount } from '../../app/context.ts'
import { Chart } from '../../components/chart.tsx'
import type { Delivery } from '../../components/deliveries.tsx'
import { Panel, Skeleton } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import type { Chain } from '../../lib/chains.ts'
import { useResource } from '../../lib/use-resource.ts'

/** How many deliveries are asked for their attempts. */
const sampled = 30

/** How long the receiver took to answer, of the newest attempts. */
export function Latency({ chain, deliveries }: { chain: Chain; deliveries: readonly Delivery[] }) {
  const { on } = useAccount()
  // Taken once: the list changes with every delivery, and each would be asked again.
  const [ids] = useState(() =>
    deliveries
      .filter(({ delivery_count }) => delivery_count > 0)
      .slice(0, sampled)
      .map(({ webhook_history_id }) => webhook_history_id),
  )
  const loaded = useResource(
    async (signal) => {
      const lists = await Promise.all(
        ids.map((webhook_history_id) =>
          on(chain).ListWebhookAttempts({ webhook_history_id }, { signal }),
        ),
      )
      return lists
        .flatMap(({ webhook_attempts }) => webhook_attempts)
        .sort((a, b) => a.attempt_time.localeCompare(b.attempt_time))
    },
    [ids],
  )
  const attempts = loaded.data
  const shown = useMemo(() => {
    const times = attempts?.map(({ attempt_time }) => Date.parse(attempt_time) / 1000) ?? []
    const isGood = (code: number | null) => code !== null && code >= 200 && code < 300
    const values = (good: boolean) =>
      attempts?.map(({ status_code, duration_ms }) =>
        isGood(status_code) === good ? duration_ms : null,
      ) ?? []
    return {
      times,
      series: [
        { title: 'accepted', values: values(true) },
        { title: 'failed', values: values(false) },
      ],
    }
  }, [attempts])
  if (ids.length < 2) return null
  if (!attempts)
    return loaded.loading ? (
      <Skeleton lines={4} />
    ) : (
      <Problem error={loaded.error} onRetry={loaded.reload} />
    )
  return (
    <Panel>
      <Chart title="Time to answer" unit="ms" times={shown.times} series={shown.series} />
    </Panel>
  )
}
