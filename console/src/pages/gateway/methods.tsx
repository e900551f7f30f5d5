import { useState } from 'preact/hooks'
import { useAccount } from '../../app/context.ts'
import { Empty, Panel, Skeleton } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { Table } from '../../components/table.tsx'
import { Choice } from '../../components/tabs.tsx'
import { usageColumns } from '../../components/usage-columns.ts'
import { download, toCsv } from '../../lib/export.ts'
import { formatDuration } from '../../lib/format.ts'
import { useResource } from '../../lib/use-resource.ts'

const dayMs = 86_400_000

/** The methods of the gateway by calls, errors and latency, of all keys or of each. */
export function Methods() {
  const { client, organization } = useAccount()
  const { organization_id } = organization
  const [keys, setKeys] = useState('all')
  const [days, setDays] = useState('7')
  const per_key = keys === 'each'
  const loaded = useResource(
    (signal) => {
      const start_day = new Date(Date.now() - (Number(days) - 1) * dayMs).toISOString().slice(0, 10)
      return client.admin.ListMethodUsage({ organization_id, per_key, start_day }, { signal })
    },
    [per_key, days],
  )
  const rows = loaded.data?.methods
  return (
    <Panel
      flush
      title="Methods of your organization"
      actions={
        <>
          <Choice
            label="Keys"
            options={[
              ['all', 'All keys'],
              ['each', 'By key'],
            ]}
            value={keys}
            onChange={setKeys}
          />
          <Choice
            label="Days"
            options={[
              ['1', 'Today'],
              ['7', '7 days'],
              ['30', '30 days'],
            ]}
            value={days}
            onChange={setDays}
          />
          {rows && rows.length > 0 && (
            <button
              type="button"
              class="button small"
              onClick={() => download('methods.csv', 'text/csv', toCsv(rows))}
            >
              Export CSV
            </button>
          )}
        </>
      }
    >
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!rows && loaded.loading && <Skeleton lines={6} />}
      {rows?.length === 0 && (
        <Empty title="No call in this time.">
          <p>Calls of the gateway are counted by key, method and day. Try one in the playground.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <Table
          label="Methods"
          rows={rows}
          keyOf={({ chain, network, method, credential_id }) =>
            `${chain} ${network} ${method} ${credential_id}`
          }
          columns={[
            { title: 'Method', cell: ({ method }) => <code>{method}</code> },
            {
              title: 'Network',
              hide: 'narrow',
              cell: ({ chain, network }) => `${chain} ${network}`,
            },
            ...(rows.some(({ credential_id }) => credential_id !== '')
              ? [
                  {
                    title: 'Key',
                    cell: (row: { api_key_hint: string; credential_id: string }) => (
                      <code title={row.credential_id}>{row.api_key_hint || 'deleted'}</code>
                    ),
                  },
                ]
              : []),
            ...usageColumns,
            {
              title: 'p50',
              align: 'end',
              cell: ({ p50_ms }) => formatDuration(p50_ms),
            },
            {
              title: 'p99',
              align: 'end',
              hide: 'narrow',
              cell: ({ p99_ms }) => formatDuration(p99_ms),
            },
          ]}
        />
      )}
    </Panel>
  )
}
