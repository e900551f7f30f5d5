import { useEffect, useState } from 'preact/hooks'
import { useAccount } from '../app/context.ts'
import { formatConstant, formatCount } from '../lib/format.ts'
import { useResource } from '../lib/use-resource.ts'
import { Panel, Skeleton } from './layout.tsx'
import { OperationDialog } from './operation-form.tsx'
import { Problem } from './problem.tsx'
import { Table } from './table.tsx'

/** How often live use is read again. */
const refreshMs = 10_000

/** The rate limits of an organization with their use. */
export function Limits({ organization_id }: { organization_id: string }) {
  const { client, may } = useAccount()
  const [setting, setSetting] = useState(false)
  const loaded = useResource(
    (signal) => client.admin.ListEffectiveRateLimits({ organization_id }, { signal }),
    [organization_id],
  )
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) loaded.reload()
    }, refreshMs)
    return () => clearInterval(timer)
  }, [loaded.reload])
  const rows = loaded.data?.effective_rate_limits
  return (
    <Panel
      flush
      title="Rate limits"
      actions={
        may('SetRateLimit') && (
          <button type="button" class="button small" onClick={() => setSetting(true)}>
            Set a limit
          </button>
        )
      }
    >
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!rows && loaded.loading && <Skeleton lines={4} />}
      {rows && (
        <Table
          label="Rate limits"
          rows={rows}
          keyOf={({ chain }) => chain}
          columns={[
            { title: 'Chain', cell: ({ chain }) => chain },
            {
              title: 'Comes from',
              hide: 'medium',
              cell: ({ source }) => formatConstant(source, 'RATE_LIMIT_SOURCE_'),
            },
            {
              title: 'Per second',
              align: 'end',
              hide: 'narrow',
              cell: ({ per_second_limit }) => limitText(per_second_limit),
            },
            {
              title: 'Hour',
              align: 'end',
              hide: 'narrow',
              cell: ({ hour_used, per_hour_limit }) => (
                <Meter used={hour_used} limit={per_hour_limit} />
              ),
            },
            {
              title: 'Day',
              align: 'end',
              cell: ({ day_used, per_day_limit }) => (
                <Meter used={day_used} limit={per_day_limit} />
              ),
            },
            {
              title: 'Month',
              align: 'end',
              hide: 'medium',
              cell: ({ month_used, per_month_limit }) => (
                <Meter used={month_used} limit={per_month_limit} />
              ),
            },
          ]}
        />
      )}
      {setting && (
        <OperationDialog
          title="Set a limit"
          submit="Set"
          on="admin"
          operation="SetRateLimit"
          known={{ organization_id }}
          fixed={['organization_id']}
          run={async (request) => {
            const call = client.admin.SetRateLimit
            await call(request as Parameters<typeof call>[0])
            setSetting(false)
            loaded.reload()
          }}
          onClose={() => setSetting(false)}
        />
      )}
    </Panel>
  )
}

const limitText = (limit: number): string =>
  limit === -1 ? 'unlimited' : limit === 0 ? 'blocked' : formatCount(limit)

/** A number against its limit. */
function Meter({ used, limit }: { used: number; limit: number }) {
  const part = limit > 0 ? Math.min(1, used / limit) : 0
  return (
    <span title={`${formatCount(used)} of ${limitText(limit)}`}>
      {formatCount(used)} <span class="soft">of {limitText(limit)}</span>{' '}
      {limit > 0 && (
        <span
          class="meter"
          aria-hidden="true"
          data-tone={part > 0.95 ? 'bad' : part > 0.8 ? 'warn' : undefined}
        >
          <span style={{ width: `${part * 100}%` }} />
        </span>
      )}
    </span>
  )
}
