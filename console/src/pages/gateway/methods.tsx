import { useMemo } from 'preact/hooks'
import { useAccount } from '../../app/context.ts'
import { Empty, Panel, Skeleton } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { Table } from '../../components/table.tsx'
import { usageColumns } from '../../components/usage-columns.ts'
import { sumUsage } from '../../lib/usage.ts'
import { useResource } from '../../lib/use-resource.ts'

/** The methods of the gateway by calls and errors, of the last seven days. */
export function Methods() {
  const { client, organization } = useAccount()
  const loaded = useResource(
    (signal) =>
      client.admin.GetUsage({ organization_id: organization.organization_id }, { signal }),
    [],
  )
  const rows = useMemo(
    () =>
      loaded.data &&
      sumUsage(
        loaded.data.usage.filter(({ network }) => network !== ''),
        ({ chain, network, method }) => [`${chain} ${network}`, method],
      ),
    [loaded.data],
  )
  return (
    <Panel flush title="Methods of your organization">
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!rows && loaded.loading && <Skeleton lines={6} />}
      {rows?.length === 0 && (
        <Empty title="No call yet.">
          <p>Calls of the gateway are counted by key, method and day.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <Table
          label="Methods"
          rows={rows}
          keyOf={({ key }) => key}
          columns={[
            { title: 'Method', cell: ({ names }) => <code>{names[1]}</code> },
            { title: 'Network', cell: ({ names }) => names[0] },
            ...usageColumns,
          ]}
        />
      )}
    </Panel>
  )
}
