import { useMemo, useState } from 'preact/hooks'
import { useAccount } from '../app/context.ts'
import { download, toCsv } from '../lib/export.ts'
import { formatConstant, formatCount } from '../lib/format.ts'
import { sumUsage, type UsageRow, usageDays } from '../lib/usage.ts'
import { useResource } from '../lib/use-resource.ts'
import { Chart } from './chart.tsx'
import { Empty, Panel, Skeleton } from './layout.tsx'
import { Problem } from './problem.tsx'
import { Table } from './table.tsx'
import { Choice } from './tabs.tsx'
import { usageColumns } from './usage-columns.ts'

const groupings = {
  method: (row: UsageRow) => [row.network ? `${row.chain} ${row.network}` : row.chain, row.method],
  key: (row: UsageRow) => [row.api_key_hint],
  day: (row: UsageRow) => [row.day],
}

/** Calls of an organization by method, key and day, and its quotas. */
export function Usage({ organization_id }: { organization_id: string }) {
  const { client } = useAccount()
  const [grouping, setGrouping] = useState<keyof typeof groupings>('method')
  const loaded = useResource(
    (signal) => client.admin.GetUsage({ organization_id }, { signal }),
    [organization_id],
  )
  const usage = loaded.data?.usage
  const rows = useMemo(() => usage && sumUsage(usage, groupings[grouping]), [usage, grouping])
  const days = useMemo(() => usage && dayLines(usage, grouping), [usage, grouping])
  return (
    <>
      {loaded.data && (
        <Panel flush title="Quotas">
          <Table
            label="Quotas"
            rows={loaded.data.quotas}
            keyOf={({ quota_name }) => quota_name}
            columns={[
              {
                title: 'Quota',
                cell: ({ quota_name }) => formatConstant(quota_name, 'QUOTA_'),
              },
              { title: 'Used', align: 'end', cell: ({ used }) => formatCount(used) },
              { title: 'Limit', align: 'end', cell: ({ quota_limit }) => formatCount(quota_limit) },
              {
                title: 'Comes from',
                hide: 'narrow',
                cell: ({ is_default }) => (is_default ? 'the configuration' : 'the organization'),
              },
            ]}
          />
        </Panel>
      )}
      {days && days.times.length > 0 && (
        <Panel>
          <Chart title={`Calls per day${days.suffix}`} times={days.times} series={days.series} />
        </Panel>
      )}
      <Panel
        flush
        title="Usage"
        actions={
          <>
            <Choice
              label="By"
              options={[
                ['method', 'By method'],
                ['key', 'By key'],
                ['day', 'By day'],
              ]}
              value={grouping}
              onChange={(value) => setGrouping(value as keyof typeof groupings)}
            />
            {usage && usage.length > 0 && (
              <button
                type="button"
                class="button small"
                onClick={() => download('usage.csv', 'text/csv', toCsv(usage))}
              >
                Export CSV
              </button>
            )}
          </>
        }
      >
        <Problem error={loaded.error} onRetry={loaded.reload} />
        {!rows && loaded.loading && <Skeleton lines={5} />}
        {rows?.length === 0 && <Empty title="No call was counted yet." />}
        {rows && rows.length > 0 && (
          <Table
            label="Usage"
            rows={rows}
            keyOf={({ key }) => key}
            columns={[
              {
                title: grouping === 'method' ? 'Method' : grouping === 'key' ? 'Key' : 'Day',
                cell: ({ names }) => <code>{names.at(-1)}</code>,
              },
              ...(grouping === 'method'
                ? [{ title: 'Chain', cell: ({ names }: { names: readonly string[] }) => names[0] }]
                : []),
              ...usageColumns,
            ]}
          />
        )}
      </Panel>
    </>
  )
}

/** How many methods or keys have a line of their own. */
const shownLines = 4

/** Calls and errors of each day, or the calls of the methods or keys with the most. */
function dayLines(usage: readonly UsageRow[], grouping: keyof typeof groupings) {
  const days = usageDays(usage)
  const times = days.map((day) => Date.parse(`${day}T00:00:00Z`) / 1000)
  const line = (title: string, rows: readonly UsageRow[], count: 'calls' | 'errors') => {
    const sums = sumUsage(rows, ({ day }) => [day])
    const counts = new Map(sums.map((sum) => [sum.names[0], sum[count]]))
    return { title, values: days.map((day) => counts.get(day) ?? 0) }
  }
  if (grouping === 'day')
    return {
      ...{ times, suffix: '' },
      series: [line('calls', usage, 'calls'), line('errors', usage, 'errors')],
    }
  const namesOf = groupings[grouping]
  const keyOf = (row: UsageRow) => JSON.stringify(namesOf(row))
  const groups = sumUsage(usage, namesOf).slice(0, shownLines)
  return {
    ...{ times, suffix: grouping === 'method' ? ', by method' : ', by key' },
    series: groups.map(({ key, names }) => {
      const own = usage.filter((row) => keyOf(row) === key)
      return line(names.join(' '), own, 'calls')
    }),
  }
}
